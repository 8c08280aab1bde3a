#include <array>
#include <cmath>

#include "troupe/ops/cpu/kernel_tables.hpp"
#include "troupe/ops/cpu/loops/f64_sums.hpp"
#include "troupe/ops/cpu/loops/parallel.hpp"
#include "troupe/ops/cpu/loops/vector_clones.hpp"
#include "troupe/ops/cpu/optimizers/step_blocks.hpp"

namespace troupe::cpu {
namespace {

/// Sums of squares of a block's weights and of its update.
struct squares {
  double weight = 0, update = 0;
};

[[gnu::always_inline]] inline float update_of(float w, float m, float v, const lamb_factors& factors) {
  return factors.mean_scale * m / (factors.root_scale * std::sqrt(v) + factors.epsilon) +
         factors.weight_decay * w;
}

TROUPE_CLONES void move_means(const float* __restrict g, float* __restrict m, float* __restrict v,
                              std::int64_t size, lamb_factors factors) {
  for (std::int64_t i = 0; i < size; ++i) {
    m[i] += factors.one_minus_beta1 * (g[i] - m[i]);
    v[i] = factors.beta2 * v[i] + factors.one_minus_beta2 * (g[i] * g[i]);
  }
}

TROUPE_CLONES void write_update(const float* __restrict w, const float* __restrict m,
                                const float* __restrict v, float* __restrict update, std::int64_t size,
                                lamb_factors factors) {
  for (std::int64_t i = 0; i < size; ++i) update[i] = update_of(w[i], m[i], v[i], factors);
}

/// Updates the moments and returns the sums of squares for the trust ratio. The update itself is not stored:
/// recomputing it is cheaper than writing and reading it.
squares begin_block(const adam_block& block, const lamb_factors& factors) {
  constexpr std::int64_t part_elements = 2048;
  alignas(64) std::array<float, part_elements> update;
  squares sums;
  for (std::int64_t first = 0; first < block.size; first += part_elements) {
    auto size = std::min(part_elements, block.size - first);
    auto *w = block.w + first, *m = block.m + first, *v = block.v + first;
    move_means(block.g + first, m, v, size, factors);
    write_update(w, m, v, update.data(), size, factors);
    sums.weight += sum_of_squares(w, size);
    sums.update += sum_of_squares(update.data(), size);
  }
  return sums;
}

TROUPE_CLONES void move_weights(float* __restrict w, const float* __restrict m, const float* __restrict v,
                                std::int64_t size, lamb_factors factors, float rate) {
  for (std::int64_t i = 0; i < size; ++i) w[i] -= rate * update_of(w[i], m[i], v[i], factors);
}

float rate_of(const squares& norms, const lamb_factors& factors) {
  auto is_defined = norms.weight > 0 && norms.update > 0;
  auto trust = is_defined ? std::sqrt(norms.weight) / std::sqrt(norms.update) : 1;
  return static_cast<float>(factors.learning_rate * trust);
}

/// Sums of each slot's blocks, in order.
std::span<const squares> sum_by_slot(std::span<const adam_block> blocks, std::span<const squares> of_blocks,
                                     std::size_t num_slots) {
  thread_local std::vector<squares> sums;
  sums.assign(num_slots, {});
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    sums[blocks[i].slot].weight += of_blocks[i].weight;
    sums[blocks[i].slot].update += of_blocks[i].update;
  }
  return sums;
}

void step_all(std::span<const adam_slot> slots, const lamb_factors& factors) {
  thread_local std::vector<squares> memory;
  auto blocks = blocks_of(slots);
  memory.resize(blocks.size());
  std::span<squares> of_blocks = memory;
  auto num_blocks = static_cast<std::int64_t>(blocks.size()), elements = elements_of(blocks);
  parallel_for(num_blocks, elements, [&](std::int64_t index) {
    auto at = static_cast<std::size_t>(index);
    of_blocks[at] = begin_block(blocks[at], factors);
  });
  auto of_slots = sum_by_slot(blocks, of_blocks, slots.size());
  parallel_for(num_blocks, elements, [&](std::int64_t index) {
    const auto& [slot, w, g, m, v, low, size] = blocks[static_cast<std::size_t>(index)];
    move_weights(w, m, v, size, factors, rate_of(of_slots[slot], factors));
    low.write(w, size);
  });
}

}  // namespace

lamb_step_kernels lamb_step() { return {.step = step_all}; }

}  // namespace troupe::cpu
