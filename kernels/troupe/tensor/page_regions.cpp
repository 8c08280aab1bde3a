#include "troupe/tensor/page_regions.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <iterator>

namespace troupe {
namespace {

constexpr std::size_t large_page_bytes = std::size_t{2} << 20, small_page_bytes = 4096, alignment = 64;

/// Behind each block: blocks of powers of two would all begin at the same places of the caches.
constexpr std::size_t gap_bytes = 17 * alignment;

std::size_t taken_by(std::size_t size_bytes) {
  return (size_bytes + alignment - 1) / alignment * alignment + gap_bytes;
}

/// Of the pages that are the block's alone.
void forget_pages(std::byte* block, std::size_t size_bytes) {
  auto misplaced = reinterpret_cast<std::uintptr_t>(block) % small_page_bytes;
  auto skipped = misplaced == 0 ? 0 : small_page_bytes - misplaced;
  if (size_bytes < skipped + small_page_bytes) return;
  ::madvise(block + skipped, (size_bytes - skipped) / small_page_bytes * small_page_bytes, MADV_DONTNEED);
}

}  // namespace

std::byte* take_large_pages(std::size_t size_bytes) {
  void* memory = nullptr;
  if (::posix_memalign(&memory, large_page_bytes, size_bytes) != 0) return nullptr;
  ::madvise(memory, size_bytes, MADV_HUGEPAGE);
  return static_cast<std::byte*>(memory);
}

page_regions::~page_regions() {
  for (const auto& [begin, region] : regions_) std::free(begin);
}

std::byte* page_regions::take(std::size_t size_bytes) {
  if (!newest_ || regions_.at(newest_).used + taken_by(size_bytes) > region_bytes) {
    auto* begin = take_large_pages(region_bytes);
    if (!begin) return nullptr;
    regions_.emplace(begin, region{});
    newest_ = begin;
  }
  auto& from = regions_.at(newest_);
  auto* block = newest_ + from.used;
  from.used += taken_by(size_bytes);
  ++from.num_out;
  return block;
}

void page_regions::give_back(void* block, std::size_t size_bytes) {
  auto* begin = static_cast<std::byte*>(block);
  auto at = std::prev(regions_.upper_bound(begin));
  if (--at->second.num_out > 0) return forget_pages(begin, size_bytes);
  if (at->first == newest_) newest_ = nullptr;
  std::free(at->first);
  regions_.erase(at);
}

}  // namespace troupe
