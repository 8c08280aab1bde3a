#pragma once
#include <cstddef>
#include <map>

namespace troupe {

/// Allocates memory with transparent huge pages (2 MiB), if the system has any; with small pages, TLB misses
/// take a quarter of an optimizer's step and some percent of a matrix product. Returns null if there is no
/// memory left. Free it with std::free.
std::byte* allocate_huge_pages(std::size_t size_bytes);

/// Places blocks that are smaller than a multiple of a huge page one after the other in large regions, so
/// that they share huge pages. Not thread-safe.
class huge_page_arena {
 public:
  static constexpr std::size_t region_bytes = std::size_t{32} << 20;
  static constexpr std::size_t largest_block = region_bytes / 4;

  huge_page_arena() = default;
  ~huge_page_arena();
  huge_page_arena(const huge_page_arena&) = delete;
  huge_page_arena& operator=(const huge_page_arena&) = delete;

  /// Allocates at most largest_block bytes, aligned to 64. Returns null if there is no memory left.
  std::byte* allocate(std::size_t size_bytes);
  /// Returns the block's pages to the system at once; the addresses are reused only after all blocks of the
  /// region are freed.
  void deallocate(void* block, std::size_t size_bytes);

  std::size_t num_regions() const { return regions_.size(); }

 private:
  struct region {
    std::size_t used = 0, num_live_blocks = 0;
  };

  std::map<std::byte*, region> regions_;  ///< by address of the first byte
  std::byte* newest_ = nullptr;           ///< the region for the next block, if it fits
};

}  // namespace troupe
