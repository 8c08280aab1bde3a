#include "troupe/ops/softmax.hpp"

#include "troupe/ops/detail/arguments.hpp"
#include "troupe/ops/kernels/all.hpp"

namespace troupe {
namespace {

tensor forward(std::string_view operation, const tensor& x,
               softmax_kernels::forward softmax_kernels::*entry) {
  require_nonempty_rows(operation, "x", x);
  auto y = empty_like(x);
  (kernels_on(x.device()).softmax.*entry)(x, y);
  return y;
}

tensor backward(std::string_view operation, const tensor& dy, const tensor& y,
                softmax_kernels::backward softmax_kernels::*entry) {
  require_nonempty_rows(operation, "y", y);
  require_like(operation, "dy", dy, y);
  auto dx = empty_like(y);
  (kernels_on(y.device()).softmax.*entry)(dy, y, dx);
  return dx;
}

}  // namespace

tensor softmax_forward(const tensor& x) { return forward("softmax", x, &softmax_kernels::softmax_forward); }

tensor softmax_backward(const tensor& dy, const tensor& y) {
  return backward("softmax_backward", dy, y, &softmax_kernels::softmax_backward);
}

tensor log_softmax_forward(const tensor& x) {
  return forward("log_softmax", x, &softmax_kernels::log_softmax_forward);
}

tensor log_softmax_backward(const tensor& dy, const tensor& y) {
  return backward("log_softmax_backward", dy, y, &softmax_kernels::log_softmax_backward);
}

}  // namespace troupe
