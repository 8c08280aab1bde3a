#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "troupe/tensor/detail/device_memory.hpp"
#include "troupe/tensor/memory.hpp"

namespace troupe {

/// The source of a device's memory.
class memory_resource {
 public:
  virtual ~memory_resource() = default;
  /// Returns null if there is no memory left.
  virtual void* allocate(std::size_t size_bytes) = 0;
  virtual void deallocate(void* memory, std::size_t size_bytes) = 0;
  /// An event behind all that is queued by now and may use what is freed now. Null where nothing is queued.
  virtual std::unique_ptr<stream_event> used_until() { return nullptr; }
};

/// Which freed blocks a request is served with.
enum class block_reuse : std::uint8_t {
  in_stream_order,  ///< any: what uses the block next is queued behind what used it before
  when_idle         ///< those that no queued work uses: another stream may write them at once
};

/// A caching allocator for one device: freed blocks are kept in free lists by size and reused, as in PyTorch.
/// Sizes are rounded up to one of eight size classes per power of two, so a block is at most an eighth larger
/// than requested. Blocks that were allocated as idle are kept apart until the work is done that was queued
/// when they were freed; thus their next owner finds them idle. Thread-safe.
class caching_allocator {
 public:
  explicit caching_allocator(memory_resource& source) : source_(source) {}

  /// Reuses a cached block or allocates one; releases the cache if the device has no memory left. Throws
  /// std::bad_alloc.
  void* allocate(std::size_t size_bytes, memory_category category,
                 block_reuse reuse = block_reuse::in_stream_order);
  /// `reuse`: as the block was allocated.
  void deallocate(void* block, std::size_t size_bytes, memory_category category,
                  block_reuse reuse = block_reuse::in_stream_order);

  /// Moves an allocated block from category `other` to `category` in the statistics.
  void set_category(std::size_t size_bytes, memory_category category);

  memory_statistics statistics() const;
  void reset_peak();
  void release_cached();

 private:
  using free_lists = std::map<std::size_t, std::vector<void*>>;  ///< by size
  struct freed_block {
    void* block;
    std::size_t size_bytes;
    std::unique_ptr<stream_event> in_use;  ///< null: not recorded yet
  };

  void add_to_category(std::size_t size_bytes, memory_category category);
  void* take_from(free_lists& lists, std::size_t size_bytes);
  void* take_freed(std::size_t size_bytes);
  void find_idle();
  void release(free_lists& lists);
  void release_locked();

  mutable std::mutex mutex_;
  memory_resource& source_;
  free_lists free_, idle_;
  std::deque<freed_block> freed_;  ///< will be idle
  memory_statistics statistics_;
};

/// While it lives, this thread allocates idle blocks.
class idle_memory_scope {
 public:
  idle_memory_scope();
  ~idle_memory_scope();
  idle_memory_scope(const idle_memory_scope&) = delete;
  idle_memory_scope& operator=(const idle_memory_scope&) = delete;

 private:
  block_reuse outer_;
};

/// The block size for a request of `size_bytes`.
std::size_t block_bytes(std::size_t size_bytes);

}  // namespace troupe
