#include "troupe/nn/norm.hpp"

#include "troupe/autograd/functions.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/nn/init.hpp"

namespace troupe::nn {
namespace {

shape checked(const char* function, std::int64_t features) {
  if (features < 1) throw_invalid(function, "at least one feature", std::to_string(features));
  return {features};
}

}  // namespace

LayerNorm::LayerNorm(std::int64_t features, double eps)
    : eps_(eps),
      weight_("weight", checked("LayerNorm", features), init::constant(1)),
      bias_("bias", {features}, nullptr) {}

variable LayerNorm::forward(const variable& input) { return layer_norm(input, &weight_, &bias_, eps_); }

void LayerNorm::each_parameter(const parameter_visitor& visit) {
  visit(weight_);
  visit(bias_);
}

RMSNorm::RMSNorm(std::int64_t features, double eps)
    : eps_(eps), weight_("weight", checked("RMSNorm", features), init::constant(1)) {}

variable RMSNorm::forward(const variable& input) { return rms_norm(input, &weight_, eps_); }

}  // namespace troupe::nn
