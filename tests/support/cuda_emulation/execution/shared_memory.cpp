#include "support/cuda_emulation/execution/shared_memory.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <new>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

#include "support/cuda_emulation/execution/launch_limits.hpp"

// The `__shared__` variables of the kernels are thread_local (device_language.hpp). The linker lays out the
// thread_local variables of objects in the order of the objects, so those of kernels lie between these two.
extern thread_local unsigned char troupe_shared_memory_begin[16], troupe_shared_memory_end[16];

namespace troupe::emulation {
namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t arena_bytes = (largest_shared_memory + page_bytes - 1) / page_bytes * page_bytes;

}  // namespace

dynamic_shared_memory_arena::dynamic_shared_memory_arena() {
  auto* memory =
      mmap(nullptr, arena_bytes + page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<std::byte*>(memory);
  if (mprotect(memory_ + arena_bytes, page_bytes, PROT_NONE) != 0) throw std::bad_alloc();
}

dynamic_shared_memory_arena::~dynamic_shared_memory_arena() {
#ifdef __SANITIZE_ADDRESS__
  __asan_unpoison_memory_region(memory_, arena_bytes);
#endif
  munmap(memory_, arena_bytes + page_bytes);
}

void* dynamic_shared_memory_arena::take(std::size_t size_bytes) {
  auto* first = memory_ + arena_bytes - (size_bytes + 15) / 16 * 16;
#ifdef __SANITIZE_ADDRESS__
  __asan_poison_memory_region(memory_, arena_bytes);
  __asan_unpoison_memory_region(first, size_bytes);
#endif
  std::memset(first, unset_byte, size_bytes);
  return first;
}

void unset_static_shared_memory() {
  // Compared as numbers, since to the compiler these are unrelated objects.
  auto begin =
      reinterpret_cast<std::uintptr_t>(troupe_shared_memory_begin) + sizeof(troupe_shared_memory_begin);
  auto end = reinterpret_cast<std::uintptr_t>(troupe_shared_memory_end);
  std::memset(reinterpret_cast<void*>(begin), unset_byte, end - begin);
}

}  // namespace troupe::emulation
