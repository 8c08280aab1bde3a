#include "troupe/tensor/detail/caching_allocator.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace troupe {
namespace {

#ifdef TROUPE_FREE_AT_ONCE
constexpr bool keeps_blocks = false;
#else
constexpr bool keeps_blocks = true;
#endif

}  // namespace

std::size_t block_bytes(std::size_t size_bytes) {
  constexpr std::size_t alignment = 64;
  auto step = std::max(alignment, std::bit_floor(std::max<std::size_t>(size_bytes, 1)) / 8);
  return std::max(alignment, (size_bytes + step - 1) / step * step);
}

void* caching_allocator::allocate(std::size_t size_bytes, memory_category category, block_reuse reuse) {
  auto rounded = block_bytes(size_bytes);
  std::lock_guard lock(mutex_);
  if (reuse == block_reuse::when_idle) find_idle();
  void* block = reuse == block_reuse::in_stream_order ? take_from(free_, rounded) : nullptr;
  if (!block) block = take_from(idle_, rounded);
  if (!block && reuse == block_reuse::in_stream_order) block = take_freed(rounded);
  if (!block) {
    block = source_.allocate(rounded);
    if (!block) {
      release_locked();
      block = source_.allocate(rounded);
    }
    if (!block) throw std::bad_alloc();
    ++statistics_.num_from_system;
  }
  statistics_.current += rounded;
  statistics_.peak = std::max(statistics_.peak, statistics_.current);
  add_to_category(rounded, category);
  return block;
}

/// Null if there is none.
void* caching_allocator::take_from(free_lists& lists, std::size_t size_bytes) {
  auto at = lists.find(size_bytes);
  if (at == lists.end() || at->second.empty()) return nullptr;
  auto* block = at->second.back();
  at->second.pop_back();
  statistics_.cached -= size_bytes;
  return block;
}

/// The same of those that will be idle.
void* caching_allocator::take_freed(std::size_t size_bytes) {
  auto found = std::ranges::find(freed_, size_bytes, &freed_block::size_bytes);
  if (found == freed_.end()) return nullptr;
  auto* block = found->block;
  freed_.erase(found);
  statistics_.cached -= size_bytes;
  return block;
}

/// They become so in about the order in which they were freed.
void caching_allocator::find_idle() {
  while (!freed_.empty()) {
    auto& [block, size_bytes, in_use] = freed_.front();
    if (!in_use) in_use = source_.used_until();
    if (in_use && !in_use->is_reached()) return;
    idle_[size_bytes].push_back(block);
    freed_.pop_front();
  }
}

void caching_allocator::add_to_category(std::size_t size_bytes, memory_category category) {
  auto index = static_cast<std::size_t>(category);
  auto& current = statistics_.by_category[index];
  auto& peak = statistics_.peak_by_category[index];
  current += size_bytes;
  peak = std::max(peak, current);
}

void caching_allocator::set_category(std::size_t size_bytes, memory_category category) {
  auto rounded = block_bytes(size_bytes);
  std::lock_guard lock(mutex_);
  statistics_.by_category[static_cast<std::size_t>(memory_category::other)] -= rounded;
  add_to_category(rounded, category);
}

void caching_allocator::deallocate(void* block, std::size_t size_bytes, memory_category category,
                                   block_reuse reuse) {
  auto rounded = block_bytes(size_bytes);
  std::unique_ptr<stream_event> in_use;
  if (reuse == block_reuse::when_idle) {
    try {
      in_use = source_.used_until();
    } catch (...) {  // find_idle() tries again, with a later event
    }
  }
  std::lock_guard lock(mutex_);
  statistics_.current -= rounded;
  statistics_.by_category[static_cast<std::size_t>(category)] -= rounded;
  if (!keeps_blocks) return source_.deallocate(block, rounded);
  statistics_.cached += rounded;
  if (reuse == block_reuse::when_idle)
    freed_.push_back({block, rounded, std::move(in_use)});
  else
    free_[rounded].push_back(block);
}

memory_statistics caching_allocator::statistics() const {
  std::lock_guard lock(mutex_);
  return statistics_;
}

void caching_allocator::reset_peak() {
  std::lock_guard lock(mutex_);
  statistics_.peak = statistics_.current;
  std::ranges::copy(statistics_.by_category, statistics_.peak_by_category);
}

void caching_allocator::release_cached() {
  std::lock_guard lock(mutex_);
  release_locked();
}

/// Freeing waits for all queued work, and so for what uses the blocks that are not idle yet.
void caching_allocator::release_locked() {
  for (auto& each : std::exchange(freed_, {})) free_[each.size_bytes].push_back(each.block);
  release(free_);
  release(idle_);
}

void caching_allocator::release(free_lists& lists) {
  for (auto& [size, blocks] : lists)
    while (!blocks.empty()) {
      auto* block = blocks.back();
      blocks.pop_back();  // first: a block whose deallocation throws must not be freed again
      statistics_.cached -= size;
      source_.deallocate(block, size);
    }
  lists.clear();
}

}  // namespace troupe
