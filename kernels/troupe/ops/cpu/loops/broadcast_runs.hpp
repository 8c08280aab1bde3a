#pragma once
#include <algorithm>
#include <array>
#include <vector>

#include "troupe/ops/cpu/loops/map_in_blocks.hpp"
#include "troupe/ops/detail/broadcast.hpp"

namespace troupe::cpu {

/// Returns `count` elements of `from` as an array of T (bf16 and f16 as floats); repeats one element if the
/// stride is 0.
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

/// A group of consecutive runs: run i writes elements [first + i * count, ...) of the result and reads the
/// operands from offsets + i * steps on, with `strides`.
struct run_group {
  std::int64_t runs, first, count;
  broadcast_plan::offsets offsets, steps, strides;
};

/// Calls `run(run_group)` for all of the result, on all the threads this thread may use: short runs are
/// grouped, long ones split into blocks.
template <class Run>
void for_each_run(const shape& result, const std::vector<shape>& operands, const Run& run) {
  if (result.num_elements() == 0) return;
  auto plan = plan_broadcast(result, operands);
  broadcast_plan::axis along;
  if (!plan.outer.empty()) along = plan.outer.back(), plan.outer.pop_back();
  auto size = plan.run.extent, blocks = (size + block_elements - 1) / block_elements;
  auto together = std::clamp<std::int64_t>(block_elements / size, 1, along.extent);
  auto groups = (along.extent + together - 1) / together;
  parallel_for(plan.num_runs() * groups * blocks, result.num_elements(), [&](std::int64_t index) {
    auto group = index / blocks, first = (index - group * blocks) * block_elements;
    auto at = group / groups, begin = (group - at * groups) * together;
    run_group some{std::min(together, along.extent - begin),
                   (at * along.extent + begin) * size + first,
                   std::min(block_elements, size - first),
                   plan.begin_of(at),
                   along.strides,
                   plan.run.strides};
    for (std::size_t i = 0; i < some.offsets.size(); ++i)
      some.offsets[i] += begin * along.strides[i] + first * plan.run.strides[i];
    run(some);
  });
}

/// Calls `run(first, count, offsets, strides)` for each run.
template <class Run>
void for_each_single_run(const shape& result, const std::vector<shape>& operands, const Run& run) {
  for_each_run(result, operands, [&](run_group some) {
    for (std::int64_t i = 0; i < some.runs; ++i) {
      run(some.first, some.count, some.offsets, some.strides);
      some.first += some.count;
      for (std::size_t o = 0; o < some.offsets.size(); ++o) some.offsets[o] += some.steps[o];
    }
  });
}

}  // namespace troupe::cpu
