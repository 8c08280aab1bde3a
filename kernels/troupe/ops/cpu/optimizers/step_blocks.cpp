#include "troupe/ops/cpu/optimizers/step_blocks.hpp"

namespace troupe::cpu {

std::span<const adam_block> blocks_of(std::span<const adam_slot> slots) {
  thread_local std::vector<adam_block> blocks;
  blocks.clear();
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    auto handles = slots[slot];
    auto* w = handles.weight.values<float>().data();
    const auto* g = handles.gradient.values<float>().data();
    auto* m = handles.exp_avg.values<float>().data();
    auto* v = handles.exp_avg_sq.values<float>().data();
    rounded_copy low(handles.low_precision);
    for_each_step_block(handles.weight.num_elements(), [&](std::int64_t first, std::int64_t count) {
      blocks.push_back({slot, w + first, g + first, m + first, v + first, low.from(first), count});
    });
  }
  return blocks;
}

}  // namespace troupe::cpu
