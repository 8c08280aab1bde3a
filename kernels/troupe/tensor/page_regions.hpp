#pragma once
#include <cstddef>
#include <map>

namespace troupe {

/// Asks for large pages (2 MiB): to find small ones takes a quarter of an optimizer's step, and some percent
/// of a product. A wish: small pages hold the same. Null if there is no memory left. For std::free.
std::byte* take_large_pages(std::size_t size_bytes);

/// Blocks that are no multiples of large pages, one behind the other in regions of many, so that no page is
/// theirs alone. Not thread-safe.
class page_regions {
 public:
  static constexpr std::size_t region_bytes = std::size_t{32} << 20;
  static constexpr std::size_t largest_block = region_bytes / 4;

  page_regions() = default;
  ~page_regions();
  page_regions(const page_regions&) = delete;
  page_regions& operator=(const page_regions&) = delete;

  /// At most largest_block bytes, aligned to 64. Null if there are none left.
  std::byte* take(std::size_t size_bytes);
  /// The system has the memory back at once, but its addresses are used again only when all blocks of the
  /// region are given back.
  void give_back(void* block, std::size_t size_bytes);

  std::size_t num_regions() const { return regions_.size(); }

 private:
  struct region {
    std::size_t used = 0, num_out = 0;
  };

  std::map<std::byte*, region> regions_;  ///< by their first byte
  std::byte* newest_ = nullptr;           ///< the region that the next block is taken from, if it fits
};

}  // namespace troupe
