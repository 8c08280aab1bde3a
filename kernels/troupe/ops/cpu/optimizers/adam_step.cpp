#include <cmath>

#include "troupe/ops/cpu/kernel_tables.hpp"
#include "troupe/ops/cpu/loops/parallel.hpp"
#include "troupe/ops/cpu/loops/vector_clones.hpp"
#include "troupe/ops/cpu/optimizers/step_blocks.hpp"

namespace troupe::cpu {
namespace {

TROUPE_CLONES void step_of(float* __restrict w, const float* __restrict g, float* __restrict m,
                           float* __restrict v, std::int64_t size, adam_factors factors) {
  for (std::int64_t i = 0; i < size; ++i) {
    auto gradient = g[i] + factors.gradient_decay * w[i];
    auto mean = m[i] + factors.one_minus_beta1 * (gradient - m[i]);
    auto square = factors.beta2 * v[i] + factors.one_minus_beta2 * (gradient * gradient);
    auto denominator = std::sqrt(square) / factors.correction + factors.epsilon;
    w[i] = factors.shrink * w[i] - factors.rate * mean / denominator;
    m[i] = mean;
    v[i] = square;
  }
}

void step_all(std::span<const adam_slot> slots, const adam_factors& factors) {
  auto blocks = blocks_of(slots);
  parallel_for(static_cast<std::int64_t>(blocks.size()), elements_of(blocks), [&](std::int64_t index) {
    const auto& block = blocks[static_cast<std::size_t>(index)];
    step_of(block.w, block.g, block.m, block.v, block.size, factors);
    block.low.write(block.w, block.size);
  });
}

}  // namespace

adam_step_kernels adam_step() { return {.step = step_all}; }

}  // namespace troupe::cpu
