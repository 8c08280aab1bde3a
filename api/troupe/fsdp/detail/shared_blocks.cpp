#include "troupe/fsdp/detail/shared_blocks.hpp"

#include <algorithm>

#include "troupe/tensor/memory.hpp"

namespace troupe::detail {

tensor shared_blocks::take(std::int64_t num_elements, memory_category category) {
  auto best = blocks_.end();
  for (auto each = blocks_.begin(); each != blocks_.end(); ++each) {
    if (each->is_shared() || each->num_elements() < num_elements) continue;
    if (best == blocks_.end() || each->num_elements() < best->num_elements()) best = each;
  }
  if (best != blocks_.end()) return best->rows(0, num_elements);
  // Free ones are too small for this: they go, so that as many stay as are needed at a time.
  std::erase_if(blocks_, [](const tensor& each) { return !each.is_shared(); });
  memory_scope counted(category);
  blocks_.push_back(group_.allocate({num_elements}));
  return blocks_.back().rows(0, num_elements);
}

std::size_t shared_blocks::size_bytes() const {
  std::size_t sum = 0;
  for (const auto& each : blocks_) sum += each.size_bytes();
  return sum;
}

}  // namespace troupe::detail
