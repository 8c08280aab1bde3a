#include "troupe/ops/activation.hpp"

#include "troupe/ops/detail/arguments.hpp"
#include "troupe/ops/kernels/all.hpp"

namespace troupe {
namespace {

tensor forward(std::string_view operation, const tensor& x,
               activation_kernels::forward activation_kernels::*entry) {
  require_floating(operation, "x", x);
  auto y = empty_like(x);
  (kernels_on(x.device()).activation.*entry)(x, y);
  return y;
}

/// `from` is x or y, whichever the derivative is computed from.
tensor backward(std::string_view operation, const tensor& dy, std::string_view name, const tensor& from,
                activation_kernels::backward activation_kernels::*entry) {
  require_floating(operation, name, from);
  require_like(operation, "dy", dy, from);
  auto dx = empty_like(from);
  (kernels_on(from.device()).activation.*entry)(dy, from, dx);
  return dx;
}

}  // namespace

using kernels = activation_kernels;

tensor relu_forward(const tensor& x) { return forward("relu", x, &kernels::relu_forward); }
tensor relu_backward(const tensor& dy, const tensor& y) {
  return backward("relu_backward", dy, "y", y, &kernels::relu_backward);
}

tensor gelu_forward(const tensor& x, gelu_kind kind) {
  return forward("gelu", x, kind == gelu_kind::exact ? &kernels::gelu_forward : &kernels::gelu_tanh_forward);
}
tensor gelu_backward(const tensor& dy, const tensor& x, gelu_kind kind) {
  return backward("gelu_backward", dy, "x", x,
                  kind == gelu_kind::exact ? &kernels::gelu_backward : &kernels::gelu_tanh_backward);
}

tensor silu_forward(const tensor& x) { return forward("silu", x, &kernels::silu_forward); }
tensor silu_backward(const tensor& dy, const tensor& x) {
  return backward("silu_backward", dy, "x", x, &kernels::silu_backward);
}

tensor tanh_forward(const tensor& x) { return forward("tanh", x, &kernels::tanh_forward); }
tensor tanh_backward(const tensor& dy, const tensor& y) {
  return backward("tanh_backward", dy, "y", y, &kernels::tanh_backward);
}

tensor sigmoid_forward(const tensor& x) { return forward("sigmoid", x, &kernels::sigmoid_forward); }
tensor sigmoid_backward(const tensor& dy, const tensor& y) {
  return backward("sigmoid_backward", dy, "y", y, &kernels::sigmoid_backward);
}

}  // namespace troupe
