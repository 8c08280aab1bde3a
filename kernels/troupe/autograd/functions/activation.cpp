#include "troupe/ops/activation.hpp"

#include <utility>

#include "troupe/autograd/functions.hpp"
#include "troupe/autograd/functions/fused_relu.hpp"

namespace troupe {
namespace {

using gradient_function = tensor (*)(const tensor& dy, const tensor& saved);

/// An elementwise operation whose gradient needs one tensor besides dy: x or y.
class elementwise_operation : public operation {
 public:
  elementwise_operation(gradient_function gradient, tensor saved)
      : gradient_(gradient), saved_(std::move(saved)) {}
  std::vector<tensor> backward_input(const tensor& dy) override { return {gradient_(dy, saved_)}; }

 private:
  gradient_function gradient_;
  tensor saved_;
};

variable recorded(const variable& x, tensor y, gradient_function gradient, const tensor& saved) {
  if (!would_record({&x})) return {std::move(y)};
  return record(std::move(y), {x}, std::make_unique<elementwise_operation>(gradient, saved));
}

}  // namespace

variable relu(const variable& x) {
  auto y = relu_forward(x.value);
  return recorded(x, y, relu_backward, y);
}

variable after_fused_relu(const variable& y) { return recorded(y, y.value, relu_backward, y.value); }

variable gelu(const variable& x, gelu_kind kind) {
  auto exact = [](const tensor& dy, const tensor& saved) {
    return gelu_backward(dy, saved, gelu_kind::exact);
  };
  auto by_tanh = [](const tensor& dy, const tensor& saved) {
    return gelu_backward(dy, saved, gelu_kind::tanh);
  };
  auto gradient = kind == gelu_kind::exact ? gradient_function(exact) : gradient_function(by_tanh);
  return recorded(x, gelu_forward(x.value, kind), gradient, x.value);
}

variable silu(const variable& x) { return recorded(x, silu_forward(x.value), silu_backward, x.value); }

variable tanh(const variable& x) {
  auto y = tanh_forward(x.value);
  return recorded(x, y, tanh_backward, y);
}

variable sigmoid(const variable& x) {
  auto y = sigmoid_forward(x.value);
  return recorded(x, y, sigmoid_backward, y);
}

}  // namespace troupe
