#include "troupe/tensor/detail/huge_page_arena.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <iterator>

namespace troupe {
namespace {

constexpr std::size_t large_page_bytes = std::size_t{2} << 20, small_page_bytes = 4096, alignment = 64;

/// Gap after each block: blocks whose sizes are powers of two would otherwise map to the same cache sets.
constexpr std::size_t gap_bytes = 17 * alignment;

std::size_t occupied_bytes(std::size_t size_bytes) {
  return (size_bytes + alignment - 1) / alignment * alignment + gap_bytes;
}

/// Returns the small pages that lie completely within the block.
void return_pages_to_system(std::byte* block, std::size_t size_bytes) {
  auto misplaced = reinterpret_cast<std::uintptr_t>(block) % small_page_bytes;
  auto skipped = misplaced == 0 ? 0 : small_page_bytes - misplaced;
  if (size_bytes < skipped + small_page_bytes) return;
  ::madvise(block + skipped, (size_bytes - skipped) / small_page_bytes * small_page_bytes, MADV_DONTNEED);
}

}  // namespace

std::byte* allocate_huge_pages(std::size_t size_bytes) {
  void* memory = nullptr;
  if (::posix_memalign(&memory, large_page_bytes, size_bytes) != 0) return nullptr;
  ::madvise(memory, size_bytes, MADV_HUGEPAGE);
  return static_cast<std::byte*>(memory);
}

huge_page_arena::~huge_page_arena() {
  for (const auto& [begin, region] : regions_) std::free(begin);
}

std::byte* huge_page_arena::allocate(std::size_t size_bytes) {
  if (!newest_ || regions_.at(newest_).used + occupied_bytes(size_bytes) > region_bytes) {
    auto* begin = allocate_huge_pages(region_bytes);
    if (!begin) return nullptr;
    regions_.emplace(begin, region{});
    newest_ = begin;
  }
  auto& from = regions_.at(newest_);
  auto* block = newest_ + from.used;
  from.used += occupied_bytes(size_bytes);
  ++from.num_live_blocks;
  return block;
}

void huge_page_arena::deallocate(void* block, std::size_t size_bytes) {
  auto* begin = static_cast<std::byte*>(block);
  auto at = std::prev(regions_.upper_bound(begin));
  if (--at->second.num_live_blocks > 0) return return_pages_to_system(begin, size_bytes);
  if (at->first == newest_) newest_ = nullptr;
  std::free(at->first);
  regions_.erase(at);
}

}  // namespace troupe
