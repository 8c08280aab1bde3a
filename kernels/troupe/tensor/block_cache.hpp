#pragma once
#include <map>
#include <mutex>
#include <vector>

#include "troupe/tensor/memory.hpp"

namespace troupe {

/// Where a device's memory comes from.
class memory_source {
 public:
  virtual ~memory_source() = default;
  /// Null if there is none left.
  virtual void* take(std::size_t size_bytes) = 0;
  virtual void give_back(void* memory, std::size_t size_bytes) = 0;
};

/// Blocks of one device by size. Sizes are rounded up so that there are eight of them between a power of two
/// and the next: a block is at most an eighth larger than what was asked for. Thread-safe.
class block_cache {
 public:
  explicit block_cache(memory_source& source) : source_(source) {}

  /// Throws std::bad_alloc.
  void* take(std::size_t size_bytes, memory_category category);
  void give_back(void* block, std::size_t size_bytes, memory_category category);

  /// A block that is out counts as `category` from now on, and no longer as `other`.
  void count_as(std::size_t size_bytes, memory_category category);

  memory_statistics statistics() const;
  void reset_peak();
  void release_cached();

 private:
  void count_in(std::size_t size_bytes, memory_category category);
  void release_locked();

  mutable std::mutex mutex_;
  memory_source& source_;
  std::map<std::size_t, std::vector<void*>> free_;
  memory_statistics statistics_;
};

/// How large a block for `size_bytes` is.
std::size_t block_bytes(std::size_t size_bytes);

}  // namespace troupe
