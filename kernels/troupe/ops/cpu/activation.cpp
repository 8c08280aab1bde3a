#include "troupe/ops/cpu/families.hpp"
#include "troupe/ops/cpu/in_blocks.hpp"
#include "troupe/ops/cpu/vector_clones.hpp"

namespace troupe::cpu {
namespace {

TROUPE_CLONES void relu(const float* x, float* y, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) y[i] = x[i] > 0 ? x[i] : 0;
}

TROUPE_CLONES void relu_gradient(const float* dy, const float* y, float* dx, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) dx[i] = y[i] > 0 ? dy[i] : 0;
}

}  // namespace

activation_kernels activation() {
  return {.relu_forward = [](const tensor& x, tensor& y) { map_in_blocks(relu, y, x); },
          .relu_backward = [](const tensor& dy, const tensor& y,
                              tensor& dx) { map_in_blocks(relu_gradient, dx, dy, y); }};
}

}  // namespace troupe::cpu
