#include "troupe/ops/cuda/kernel_tables.hpp"
#include "troupe/ops/cuda/loops/rows.cuh"
#include "troupe/ops/cuda/loops/step_slots.cuh"

// Three kernels: each block updates the moments of its part of a weight and sums the squares of weight and
// update; one warp per weight adds the parts; then the weights are updated. The update is computed twice
// rather than stored.

namespace troupe::cuda {
namespace {

struct double_sum {
  static constexpr double neutral = 0;
  __device__ double operator()(double a, double b) const { return a + b; }
};

__device__ float update_of(float w, float m, float v, const lamb_factors& factors) {
  return factors.mean_scale * m / (factors.root_scale * sqrtf(v) + factors.epsilon) +
         factors.weight_decay * w;
}

/// squares[block]: of the block's weights, and of their updates.
__global__ void begin_kernel(const __grid_constant__ step_batch batch, lamb_factors factors,
                             double2* squares) {
  auto part = part_of_block(batch);
  const auto& slot = batch.slots[part.slot];
  double2 total{0, 0};
  for (auto i = part.first + threadIdx.x; i < part.end; i += block_threads) {
    auto gradient = slot.g[i];
    auto m = slot.m[i], v = slot.v[i], w = slot.w[i];
    m += factors.one_minus_beta1 * (gradient - m);
    v = factors.beta2 * v + factors.one_minus_beta2 * (gradient * gradient);
    slot.m[i] = m;
    slot.v[i] = v;
    auto update = update_of(w, m, v, factors);
    total.x += static_cast<double>(w) * w;
    total.y += static_cast<double>(update) * update;
  }
  total.x = reduce_block<double_sum>(total.x);
  total.y = reduce_block<double_sum>(total.y);
  if (threadIdx.x == 0) squares[blockIdx.x] = total;
}

/// One block of one warp per slot.
__global__ void rate_kernel(const __grid_constant__ step_batch batch, double learning_rate,
                            const double2* squares, float* rates) {
  auto slot = blockIdx.x, first = slot > 0 ? batch.end_block[slot - 1] : 0;
  double2 total{0, 0};
  for (auto block = first + threadIdx.x; block < batch.end_block[slot]; block += warp_threads) {
    total.x += squares[block].x;
    total.y += squares[block].y;
  }
  total.x = reduce_warp<double_sum>(total.x);
  total.y = reduce_warp<double_sum>(total.y);
  if (threadIdx.x > 0) return;
  auto trust = total.x > 0 && total.y > 0 ? sqrt(total.x) / sqrt(total.y) : 1;
  rates[slot] = static_cast<float>(learning_rate * trust);
}

__global__ void move_kernel(const __grid_constant__ step_batch batch, lamb_factors factors,
                            const float* rates) {
  auto part = part_of_block(batch);
  const auto& slot = batch.slots[part.slot];
  auto rate = rates[part.slot];
  for (auto i = part.first + threadIdx.x; i < part.end; i += block_threads) {
    auto w = slot.w[i];
    w -= rate * update_of(w, slot.m[i], slot.v[i], factors);
    slot.w[i] = w;
    write_low(slot, i, w);
  }
}

void step(std::span<const adam_slot> slots, const lamb_factors& factors) {
  auto describe = [](const adam_slot& slot) {
    return slot_of(slot.weight, slot.gradient, slot.exp_avg, slot.exp_avg_sq, slot.low_precision);
  };
  auto target = slots.front().weight.device();
  for_each_batch(slots, describe, [&](const step_batch& batch, unsigned num_blocks) {
    auto squares =
        tensor::empty({num_blocks * static_cast<std::int64_t>(sizeof(double2))}, dtype::u8, target);
    auto rates = tensor::empty({batch.count}, dtype::f32, target);
    launch(target, num_blocks, block_threads, begin_kernel, batch, factors, elements_of<double2>(squares));
    launch(target, static_cast<unsigned>(batch.count), warp_threads, rate_kernel, batch,
           factors.learning_rate, elements_of<double2>(squares), elements_of<float>(rates));
    launch(target, num_blocks, block_threads, move_kernel, batch, factors, elements_of<float>(rates));
  });
}

}  // namespace

lamb_step_kernels lamb_step() { return {.step = step}; }

}  // namespace troupe::cuda
