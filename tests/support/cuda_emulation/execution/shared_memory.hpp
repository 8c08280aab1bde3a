#pragma once
#include <cstddef>
#include <memory>

namespace troupe::emulation {

/// The dynamic shared memory of the blocks that an OS thread runs. It ends at
/// the end of a page, and the next page is a guard page, so that accesses behind it are detected.
class dynamic_shared_memory_arena {
 public:
  dynamic_shared_memory_arena();
  ~dynamic_shared_memory_arena();
  dynamic_shared_memory_arena(const dynamic_shared_memory_arena&) = delete;
  dynamic_shared_memory_arena& operator=(const dynamic_shared_memory_arena&) = delete;

  /// The last `size_bytes`, rounded up to a multiple of 16, filled with unset_byte.
  void* take(std::size_t size_bytes);

 private:
  std::byte* memory_;
};

/// The bytes of unwritten memory: as f32, bf16 or f16 a NaN, as an index far out of range.
constexpr int unset_byte = 0xff;

/// Fills the `__shared__` variables of all kernels between the objects of shared_memory_begin.cpp and
/// shared_memory_end.cpp with unset_byte, for the calling OS thread.
void unset_static_shared_memory();

}  // namespace troupe::emulation
