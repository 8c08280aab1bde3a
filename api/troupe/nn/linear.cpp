#include "troupe/nn/linear.hpp"

#include "troupe/autograd/functions.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::nn {

Linear::Linear(std::int64_t in_features, std::int64_t out_features, linear_options options)
    : has_bias_(options.bias) {
  if (in_features < 1 || out_features < 1)
    throw_invalid("Linear", "at least one feature in and out",
                  std::to_string(in_features) + " in, " + std::to_string(out_features) + " out");
  auto or_usual = [&](initializer init) { return init ? init : init::fan_in_uniform(in_features); };
  weight_ = parameter("weight", {out_features, in_features}, or_usual(options.weight_init));
  bias_ = parameter("bias", {out_features}, or_usual(options.bias_init));
}

variable Linear::forward(const variable& input) {
  return linear(input, weight_, has_bias_ ? &bias_ : nullptr);
}

variable Linear::forward_with_relu(const variable& input) {
  return linear_relu(input, weight_, has_bias_ ? &bias_ : nullptr);
}

void Linear::each_parameter(const parameter_visitor& visit) {
  visit(weight_);
  if (has_bias_) visit(bias_);
}

}  // namespace troupe::nn
