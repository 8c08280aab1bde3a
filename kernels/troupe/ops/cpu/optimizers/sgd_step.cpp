#include "troupe/ops/cpu/kernel_tables.hpp"
#include "troupe/ops/cpu/loops/parallel.hpp"
#include "troupe/ops/cpu/loops/vector_clones.hpp"
#include "troupe/ops/cpu/optimizers/step_blocks.hpp"

namespace troupe::cpu {
namespace {

/// One block of one slot; m is null without momentum.
struct sgd_block {
  float* w;
  const float* g;
  float* m;
  rounded_copy low;
  std::int64_t size;
};

TROUPE_CLONES void plain_step(float* __restrict w, const float* __restrict g, float*, std::int64_t size,
                              sgd_factors factors) {
  for (std::int64_t i = 0; i < size; ++i) w[i] -= factors.rate * (g[i] + factors.decay * w[i]);
}

TROUPE_CLONES void momentum_step(float* __restrict w, const float* __restrict g, float* __restrict m,
                                 std::int64_t size, sgd_factors factors) {
  for (std::int64_t i = 0; i < size; ++i) {
    auto gradient = g[i] + factors.decay * w[i];
    m[i] = factors.momentum * m[i] + gradient;
    w[i] -= factors.rate * m[i];
  }
}

TROUPE_CLONES void nesterov_step(float* __restrict w, const float* __restrict g, float* __restrict m,
                                 std::int64_t size, sgd_factors factors) {
  for (std::int64_t i = 0; i < size; ++i) {
    auto gradient = g[i] + factors.decay * w[i];
    m[i] = factors.momentum * m[i] + gradient;
    w[i] -= factors.rate * (gradient + factors.momentum * m[i]);
  }
}

/// The blocks of all slots, in memory of this thread, until its next call.
std::span<const sgd_block> blocks_of(std::span<const sgd_slot> slots, bool with_momentum) {
  thread_local std::vector<sgd_block> blocks;
  blocks.clear();
  for (auto handles : slots) {
    auto* w = handles.weight.values<float>().data();
    const auto* g = handles.gradient.values<float>().data();
    auto* m = with_momentum ? handles.momentum_buffer.values<float>().data() : nullptr;
    rounded_copy low(handles.low_precision);
    for_each_step_block(handles.weight.num_elements(), [&](std::int64_t first, std::int64_t count) {
      blocks.push_back({w + first, g + first, m ? m + first : nullptr, low.from(first), count});
    });
  }
  return blocks;
}

template <void (*step)(float*, const float*, float*, std::int64_t, sgd_factors), bool with_momentum>
void step_all(std::span<const sgd_slot> slots, const sgd_factors& factors) {
  auto blocks = blocks_of(slots, with_momentum);
  parallel_for(static_cast<std::int64_t>(blocks.size()), elements_of(blocks), [&](std::int64_t index) {
    const auto& block = blocks[static_cast<std::size_t>(index)];
    step(block.w, block.g, block.m, block.size, factors);
    block.low.write(block.w, block.size);
  });
}

}  // namespace

sgd_step_kernels sgd_step() {
  return {.plain = step_all<plain_step, false>,
          .with_momentum = step_all<momentum_step, true>,
          .with_nesterov = step_all<nesterov_step, true>};
}

}  // namespace troupe::cpu
