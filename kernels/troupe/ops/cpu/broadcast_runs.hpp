#pragma once
#include <algorithm>
#include <array>
#include <vector>

#include "troupe/ops/broadcast.hpp"
#include "troupe/ops/cpu/in_blocks.hpp"

namespace troupe::cpu {

/// `count` elements of `from` for the loops: T's array, bf16 and f16 as floats; one element, repeated, where
/// the stride is 0.
template <class T>
const T* operand_block(const tensor& from, std::int64_t first, std::int64_t stride, std::int64_t count,
                       std::array<T, block_elements>& scratch) {
  const T* values = nullptr;
  if constexpr (std::is_same_v<T, float>)
    values = read_block(from, first, stride == 0 ? 1 : count, scratch);
  else
    values = from.values<T>().data() + first;
  if (stride == 1) return values;
  std::fill_n(scratch.data(), count, T(values[0]));
  return scratch.data();
}

/// Calls `run(first, count, offsets, strides)` for blocks of the result's elements [first, first + count) and
/// where the operands' elements lie, on all the threads this thread may use.
template <class Run>
void for_each_run(const shape& result, const std::vector<shape>& operands, const Run& run) {
  if (result.num_elements() == 0) return;
  auto plan = plan_broadcast(result, operands);
  auto size = plan.run.extent, blocks = (size + block_elements - 1) / block_elements;
  auto grain = std::max<std::int64_t>(1, 32768 / std::min(size, block_elements));
  parallel_for(plan.num_runs() * blocks, grain, [&](std::int64_t index) {
    auto at = blocks == 1 ? index : index / blocks, first = (index - at * blocks) * block_elements;
    auto offsets = plan.begin_of(at);
    for (std::size_t i = 0; i < offsets.size(); ++i) offsets[i] += first * plan.run.strides[i];
    run(at * size + first, std::min(block_elements, size - first), offsets, plan.run.strides);
  });
}

}  // namespace troupe::cpu
