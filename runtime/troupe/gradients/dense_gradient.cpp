#include "troupe/gradients/dense_gradient.hpp"

#include "troupe/ops/convert.hpp"

namespace troupe::gradients {

tensor dense_gradient::message_of(const gradient_part& part, const tensor& gradient) {
  return cast(gradient.defined() ? gradient : tensor::zeros({part.count}), type_);
}

std::vector<tensor> dense_gradient::sums_from(const gradient_part&, const std::vector<tensor>& received) {
  auto sums = received;
  for (auto& each : sums) each = cast(each, dtype::f32);
  return sums;
}

}  // namespace troupe::gradients
