#include "troupe/tensor/device_memory.hpp"

#include <cstdlib>
#include <cstring>

#include "troupe/tensor/block_cache.hpp"
#include "troupe/tensor/page_regions.hpp"

namespace troupe {
namespace {

#ifdef TROUPE_FREE_AT_ONCE
constexpr bool shares_pages = false;
#else
constexpr bool shares_pages = true;
#endif

/// Large tensors have large pages of their own, small ones come from the C library, and those between share
/// pages.
class cpu_memory : public memory_source {
 public:
  void* take(std::size_t size_bytes) override {
    if (size_bytes > address_space) return nullptr;
    if (is_shared(size_bytes)) return regions_.take(size_bytes);
    return size_bytes < large ? std::aligned_alloc(64, size_bytes) : take_large_pages(size_bytes);
  }
  void give_back(void* memory, std::size_t size_bytes) override {
    is_shared(size_bytes) ? regions_.give_back(memory, size_bytes) : std::free(memory);
  }

 private:
  static constexpr std::size_t small = std::size_t{64} << 10, large = std::size_t{2} << 20;

  /// More than any process can have.
  static constexpr std::size_t address_space = std::size_t{1} << 47;

  static bool is_shared(std::size_t size_bytes) {
    return shares_pages && size_bytes >= small && size_bytes <= page_regions::largest_block;
  }

  page_regions regions_;
};

}  // namespace

block_cache& cache_of(device where) {
  if (where.type == device::kind::cuda) return cuda_cache_of(where.index);
  // Never destroyed: tensors with static storage may go after it would have.
  static auto* source = new cpu_memory;
  static auto* cache = new block_cache(*source);
  return *cache;
}

std::shared_ptr<block_cache> recording_cache_of(device where) {
  return where.type == device::kind::cuda ? recording_cache_of_cuda(where.index) : nullptr;
}

void copy_bytes(void* to, device to_where, const void* from, device from_where, std::size_t size_bytes) {
  constexpr auto cpu = device::kind::cpu;
  if (to_where.type == cpu && from_where.type == cpu) {
    if (size_bytes > 0) std::memcpy(to, from, size_bytes);
    return;
  }
  copy_bytes_cuda(to, to_where, from, from_where, size_bytes);
}

}  // namespace troupe
