#include "troupe/nn/linear.hpp"

#include <cmath>

#include "troupe/autograd/functions.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/random/uniform.hpp"

namespace troupe::nn {

Linear::Linear(std::int64_t in_features, std::int64_t out_features)
    : in_features_(in_features), out_features_(out_features) {
  if (in_features < 1 || out_features < 1)
    throw_invalid("Linear", "at least one feature in and out",
                  std::to_string(in_features) + " in, " + std::to_string(out_features) + " out");
}

variable Linear::forward(const variable& input) { return linear(input, weight_, &bias_); }

void Linear::materialize(std::uint64_t seed, const std::string& prefix) {
  auto bound = static_cast<float>(1 / std::sqrt(static_cast<double>(in_features_)));
  weight_.value = tensor::empty({out_features_, in_features_});
  bias_.value = tensor::empty({out_features_});
  for (auto* each : {&weight_, &bias_}) {
    fill_uniform(each->value, -bound, bound, seed, prefix + each->name);
    each->gradient = tensor::zeros(each->value.extents());
  }
}

void Linear::collect_parameters(const std::string& prefix, std::vector<named_parameter>& into) {
  for (auto* each : {&weight_, &bias_}) into.push_back({prefix + each->name, each});
}

}  // namespace troupe::nn
