#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <utility>

namespace troupe::emulation {

/// A GPU's memory, or pinned memory of the CPU.
struct memory_block {
  static constexpr int pinned = -1;
  int gpu = pinned;
  std::size_t size_bytes = 0;
  std::byte* pages = nullptr;  ///< the whole mapping, from here on `mapped_bytes`
  std::size_t mapped_bytes = 0;
  bool is_freed = false;
};

/// Blocks of exactly the requested size, filled with a pattern that is NaN in every floating dtype. Each ends
/// within 255 bytes of a guard page; the bytes between hold a pattern that is checked when the block is freed
/// and when the process ends, and AddressSanitizer watches them. A freed block's addresses are never reused
/// and stay protected. Blocks of 1 GiB and more are zeros instead of the pattern, so that only written pages
/// take memory. Not thread-safe.
class memory_blocks {
 public:
  using entry = std::pair<const std::byte* const, memory_block>;  ///< a beginning and its block

  /// Null if the GPU has not enough memory left.
  void* take(int gpu, std::size_t size_bytes);
  /// Ends the program if `memory` is no beginning of a block of that GPU, or something wrote behind its end.
  void give_back(int gpu, void* memory);
  /// Ends the program if something wrote behind the end of any block.
  void check_ends() const;

  /// Ends the program unless [from, from + size_bytes) lies within one block of that GPU (or pinned). `what`
  /// begins the text, such as "the target of cudaMemcpyAsync".
  void require_range(const std::string& what, int gpu, const void* from, std::size_t size_bytes) const;

  /// The GPU of the block that an address lies in, or memory_block::pinned. Ends the program if there is
  /// none.
  int gpu_of(const void* address) const;

  /// Ends the program if the address is one that a block or its guard page has or had.
  void refuse_access(const void* address) const;

  /// Blocks that are not freed.
  std::size_t count(int gpu) const;

 private:
  const entry* find(const void* address) const;

  std::map<const std::byte*, memory_block> blocks_;  ///< key: the first byte
  std::map<int, std::size_t> taken_bytes_;           ///< key: GPU
};

}  // namespace troupe::emulation
