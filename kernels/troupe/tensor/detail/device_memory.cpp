#include "troupe/tensor/detail/device_memory.hpp"

#include <cstdlib>
#include <cstring>

#include "troupe/tensor/detail/caching_allocator.hpp"
#include "troupe/tensor/detail/huge_page_arena.hpp"

namespace troupe {
namespace {

#ifdef TROUPE_FREE_AT_ONCE
constexpr bool shares_pages = false;
#else
constexpr bool shares_pages = true;
#endif

/// Large blocks have their own huge pages, small ones come from the C library, and those in between share
/// huge pages.
class cpu_memory : public memory_resource {
 public:
  void* allocate(std::size_t size_bytes) override {
    if (size_bytes > address_space) return nullptr;
    if (is_shared(size_bytes)) return regions_.allocate(size_bytes);
    return size_bytes < large ? std::aligned_alloc(64, size_bytes) : allocate_huge_pages(size_bytes);
  }
  void deallocate(void* memory, std::size_t size_bytes) override {
    is_shared(size_bytes) ? regions_.deallocate(memory, size_bytes) : std::free(memory);
  }

 private:
  static constexpr std::size_t small = std::size_t{64} << 10, large = std::size_t{2} << 20;

  /// More than the address space of any process.
  static constexpr std::size_t address_space = std::size_t{1} << 47;

  static bool is_shared(std::size_t size_bytes) {
    return shares_pages && size_bytes >= small && size_bytes <= huge_page_arena::largest_block;
  }

  huge_page_arena regions_;
};

}  // namespace

caching_allocator& allocator_of(device target) {
  if (target.type == device::kind::cuda) return cuda_allocator_of(target.index);
  // Never destroyed: tensors with static storage may be destroyed later.
  static auto* source = new cpu_memory;
  static auto* cache = new caching_allocator(*source);
  return *cache;
}

std::shared_ptr<caching_allocator> capture_allocator_of(device target) {
  return target.type == device::kind::cuda ? cuda_capture_allocator_of(target.index) : nullptr;
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
