#include "troupe/ops/cpu/kernel_tables.hpp"
#include "troupe/ops/cpu/loops/map_in_blocks.hpp"
#include "troupe/ops/cpu/loops/vector_clones.hpp"
#include "troupe/ops/cpu/reductions/reductions.hpp"

namespace troupe::cpu {
namespace {

TROUPE_CLONES void scaled_difference(float factor, const float* a, const float* b, float* to,
                                     std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) to[i] = factor * (a[i] - b[i]);
}

void backward(const tensor& prediction, const tensor& target, float factor, tensor& gradient) {
  map_in_blocks([factor](const float* a, const float* b, float* to,
                         std::int64_t size) { scaled_difference(factor, a, b, to, size); },
                gradient, prediction, target);
}

}  // namespace

mse_loss_kernels mse_loss() { return {.forward = sum_of_squared_differences, .backward = backward}; }

}  // namespace troupe::cpu
