#include "troupe/tensor/detail/caching_allocator.hpp"

#include <algorithm>
#include <bit>
#include <new>

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

void* caching_allocator::allocate(std::size_t size_bytes, memory_category category) {
  auto rounded = block_bytes(size_bytes);
  std::lock_guard lock(mutex_);
  void* block = nullptr;
  if (auto at = free_.find(rounded); at != free_.end() && !at->second.empty()) {
    block = at->second.back();
    at->second.pop_back();
    statistics_.cached -= rounded;
  } else {
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

void caching_allocator::deallocate(void* block, std::size_t size_bytes, memory_category category) {
  auto rounded = block_bytes(size_bytes);
  std::lock_guard lock(mutex_);
  statistics_.current -= rounded;
  statistics_.by_category[static_cast<std::size_t>(category)] -= rounded;
  if (!keeps_blocks) return source_.deallocate(block, rounded);
  statistics_.cached += rounded;
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

void caching_allocator::release_locked() {
  for (auto& [size, blocks] : free_)
    while (!blocks.empty()) {
      auto* block = blocks.back();
      blocks.pop_back();  // first: a block whose deallocation throws must not be freed again
      statistics_.cached -= size;
      source_.deallocate(block, size);
    }
  free_.clear();
}

}  // namespace troupe
