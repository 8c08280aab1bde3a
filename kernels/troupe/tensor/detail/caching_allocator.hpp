#pragma once
#include <map>
#include <mutex>
#include <vector>

#include "troupe/tensor/memory.hpp"

namespace troupe {

/// The source of a device's memory.
class memory_resource {
 public:
  virtual ~memory_resource() = default;
  /// Returns null if there is no memory left.
  virtual void* allocate(std::size_t size_bytes) = 0;
  virtual void deallocate(void* memory, std::size_t size_bytes) = 0;
};

/// A caching allocator for one device: freed blocks are kept in free lists by size and reused, as in PyTorch.
/// Sizes are rounded up to one of eight size classes per power of two, so a block is at most an eighth larger
/// than requested. Thread-safe.
class caching_allocator {
 public:
  explicit caching_allocator(memory_resource& source) : source_(source) {}

  /// Reuses a cached block or allocates one; releases the cache if the device has no memory left. Throws
  /// std::bad_alloc.
  void* allocate(std::size_t size_bytes, memory_category category);
  void deallocate(void* block, std::size_t size_bytes, memory_category category);

  /// Moves an allocated block from category `other` to `category` in the statistics.
  void set_category(std::size_t size_bytes, memory_category category);

  memory_statistics statistics() const;
  void reset_peak();
  void release_cached();

 private:
  void add_to_category(std::size_t size_bytes, memory_category category);
  void release_locked();

  mutable std::mutex mutex_;
  memory_resource& source_;
  std::map<std::size_t, std::vector<void*>> free_;
  memory_statistics statistics_;
};

/// The block size for a request of `size_bytes`.
std::size_t block_bytes(std::size_t size_bytes);

}  // namespace troupe
