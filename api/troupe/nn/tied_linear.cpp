#include "troupe/nn/tied_linear.hpp"

#include "troupe/autograd/functions.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::nn {

TiedLinear::TiedLinear(std::int64_t in_features, std::int64_t out_features, std::string weight_name) {
  if (in_features < 1 || out_features < 1)
    throw_invalid("TiedLinear", "at least one feature in and out",
                  std::to_string(in_features) + " in, " + std::to_string(out_features) + " out");
  weight_ = parameter("weight", {out_features, in_features}, nullptr);
  weight_.tied_to = std::move(weight_name);
}

TiedLinear::TiedLinear(const TiedLinear& other) : module_of(other), weight_(other.weight_) {}

variable TiedLinear::forward(const variable& input) {
  return linear(input, owned_elsewhere_ ? *owned_elsewhere_ : weight_, nullptr);
}

void TiedLinear::each_parameter(const parameter_visitor& visit) {
  if (!owned_elsewhere_) visit(weight_);
}

void TiedLinear::tie_weights(const weight_finder& find) {
  auto found = find(weight_.tied_to);
  if (!found || found->extents != weight_.extents)
    throw_invalid("TiedLinear", "a layer before it with " + weight_.tied_to + to_string(weight_.extents),
                  found ? "one of shape " + to_string(found->extents) : "none");
  owned_elsewhere_ = std::move(found);
}

}  // namespace troupe::nn
