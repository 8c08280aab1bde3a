#pragma once
#include <algorithm>
#include <span>
#include <utility>

#include "troupe/ops/cuda/loops/elements.cuh"
#include "troupe/ops/cuda/loops/launch.cuh"

// Optimizer steps over many weights with few kernel launches (multi-tensor apply): the slots' addresses are
// kernel arguments, and each block finds its slot and its part of it.

namespace troupe::cuda {

/// One slot: weight, gradient, and up to two states; `low` is where the weight is rounded to, or null.
struct step_slot {
  float* w;
  const float* g;
  float *m, *v;
  void* low;
  std::int64_t size;
  bool low_is_bf16;
};

/// The number of slots that fit into the 4 KiB of kernel arguments.
struct step_batch {
  static constexpr int max_slots = 56;
  int count = 0;
  unsigned end_block[max_slots];  ///< one past the last block of each slot
  step_slot slots[max_slots];
};

constexpr std::int64_t step_elements = 16 * block_threads;

__device__ inline void write_low(const step_slot& slot, std::int64_t i, float weight) {
  if (!slot.low) return;
  if (slot.low_is_bf16)
    static_cast<bfloat16*>(slot.low)[i] = rounded<bfloat16>(weight);
  else
    static_cast<float16*>(slot.low)[i] = rounded<float16>(weight);
}

/// The part of a batch that a block steps: elements [first, end) of a slot.
struct slot_part {
  int slot;
  std::int64_t first, end;
};
__device__ inline slot_part part_of_block(const step_batch& batch) {
  int at = 0;
  while (blockIdx.x >= batch.end_block[at]) ++at;
  auto block = static_cast<std::int64_t>(blockIdx.x - (at > 0 ? batch.end_block[at - 1] : 0));
  return {at, block * step_elements, min(batch.slots[at].size, (block + 1) * step_elements)};
}

/// `step(w, g, m, v)` changes its arguments of each element; it reads and writes the states it has.
template <class Step>
__global__ void step_kernel(const __grid_constant__ step_batch batch, Step step) {
  auto part = part_of_block(batch);
  const auto& slot = batch.slots[part.slot];
#pragma unroll 4
  for (auto i = part.first + threadIdx.x; i < part.end; i += block_threads) {
    auto w = slot.w[i], m = Step::num_states > 0 ? slot.m[i] : 0, v = Step::num_states > 1 ? slot.v[i] : 0;
    step(w, slot.g[i], m, v);
    slot.w[i] = w;
    if (Step::num_states > 0) slot.m[i] = m;
    if (Step::num_states > 1) slot.v[i] = v;
    write_low(slot, i, w);
  }
}

inline step_slot slot_of(tensor weight, const tensor& gradient, tensor m, tensor v, tensor low) {
  return {elements_of<float>(weight), elements_of<float>(gradient), elements_of<float>(m),
          elements_of<float>(v),      low.bytes().data(),           weight.num_elements(),
          low.dtype() == dtype::bf16};
}

/// Calls `run(batch, number of blocks)` for all slots that have elements, whose step_slot is
/// `describe(slot)`, as many at a time as a batch holds.
template <class Slot, class Describe, class Run>
void for_each_batch(std::span<const Slot> slots, const Describe& describe, const Run& run) {
  step_batch batch;
  unsigned num_blocks = 0;
  auto flush = [&] {
    if (batch.count > 0) run(std::as_const(batch), num_blocks);
    batch.count = 0;
    num_blocks = 0;
  };
  for (const auto& each : slots) {
    if (each.weight.num_elements() == 0) continue;
    auto slot = describe(each);
    num_blocks += blocks_for(slot.size, step_elements);
    batch.slots[batch.count] = slot;
    batch.end_block[batch.count] = num_blocks;
    if (++batch.count == step_batch::max_slots) flush();
  }
  flush();
}

/// Steps all slots in one pass.
template <class Slot, class Describe, class Step>
void step_slots(std::span<const Slot> slots, const Describe& describe, Step step) {
  auto target = slots.front().weight.device();
  for_each_batch(slots, describe, [&](const step_batch& batch, unsigned num_blocks) {
    launch(target, num_blocks, block_threads, step_kernel<Step>, batch, step);
  });
}

}  // namespace troupe::cuda
