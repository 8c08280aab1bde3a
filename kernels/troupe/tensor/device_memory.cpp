#include "troupe/tensor/device_memory.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "troupe/tensor/block_cache.hpp"

namespace troupe {
namespace {

/// Tensors of at least so much ask for pages of this size: finding small ones takes a quarter of an
/// optimizer's step, and some percent of a product.
constexpr std::size_t large_page_bytes = std::size_t{2} << 20;

class cpu_memory : public memory_source {
 public:
  void* take(std::size_t size_bytes) override {
    if (size_bytes < large_page_bytes) return std::aligned_alloc(64, size_bytes);
    void* memory = nullptr;
    if (::posix_memalign(&memory, large_page_bytes, size_bytes) != 0) return nullptr;
    ::madvise(memory, size_bytes, MADV_HUGEPAGE);  // a wish: small pages hold the same
    return memory;
  }
  void give_back(void* memory, std::size_t) override { std::free(memory); }
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
