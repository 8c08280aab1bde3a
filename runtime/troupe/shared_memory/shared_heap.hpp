#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "troupe/posix/unique_fd.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::shared_memory {

/// A range of this process's address space, unmapped by the destructor.
class mapping {
 public:
  mapping(std::byte* first, std::size_t size_bytes) : first_(first), size_bytes_(size_bytes) {}
  ~mapping();
  mapping(const mapping&) = delete;
  mapping& operator=(const mapping&) = delete;
  std::byte* first() const { return first_; }
  std::size_t size_bytes() const { return size_bytes_; }
  /// Gives the range up without unmapping it.
  void release() { first_ = nullptr; }

 private:
  std::byte* first_;
  std::size_t size_bytes_;
};

/// Memory that other processes can map when they receive its descriptor (a sealed memfd). Its id is unique in
/// the owner's process and never used again. Its size cannot change, so no process that has mapped it can be
/// made to access a page that does not exist.
struct shared_segment {
  std::uint64_t id = 0;
  std::size_t size_bytes = 0;
  posix::unique_fd fd;
};

/// 128 random bits. Segments of a heap have it in their names, from which another process that opens one sees
/// that it is the one it was told of.
using heap_name = std::array<std::byte, 16>;
std::string segment_name(const heap_name& heap, std::uint64_t id);

/// Segments are multiples of this.
constexpr std::size_t page_bytes = 4096;
constexpr std::size_t whole_pages(std::size_t size_bytes) {
  return (size_bytes + page_bytes - 1) / page_bytes * page_bytes;
}

/// Zero bytes in whole pages. Throws system_failure.
std::shared_ptr<shared_segment> make_segment(std::uint64_t id, std::size_t size_bytes,
                                             const std::string& name = "troupe");
/// When a mapping gets its pages.
enum class paging : std::uint8_t { at_once, when_used };
/// Maps all of it. Throws system_failure.
std::unique_ptr<mapping> map_segment(int fd, std::size_t size_bytes, paging when = paging::at_once);
/// Maps a segment of another process. Throws system_failure, and std::runtime_error if its size is not
/// `size_bytes` or could shrink.
std::unique_ptr<mapping> map_received_segment(int fd, std::size_t size_bytes, paging when = paging::at_once);
/// The same, for reading only. Pages that nobody has written yet are made when they are read.
std::unique_ptr<mapping> map_received_for_reading(int fd, std::size_t size_bytes);

/// Tensors of at most so many bytes are ordinary memory.
constexpr std::size_t largest_private_bytes = 1024;

struct shared_heap_statistics {
  std::size_t current = 0;            ///< bytes held by tensors now
  std::size_t peak = 0;               ///< the most that `current` was
  std::size_t cached = 0;             ///< bytes freed by tensors and kept for the next ones
  std::uint64_t num_from_system = 0;  ///< allocations that the cache could not serve
  std::uint64_t num_revoked = 0;      ///< tensors whose pages were replaced after a failure
};

/// What a heap does with the segment of a tensor that is gone.
enum class freed_segments : std::uint8_t {
  cached,   ///< for the next tensor of its size, which may write to it
  returned  ///< to the system, once no other process maps it: what others still read stays as it is
};

/// Allocates tensors in memory that other processes of the host can map: one segment for each tensor. Each
/// segment needs a file descriptor (`ulimit -n`), so small tensors are ordinary memory. They are
/// charged to the thread's memory_account, like others, and may outlive the heap. Thread-safe.
class shared_heap {
 public:
  /// Throws system_failure if there are no random numbers.
  explicit shared_heap(freed_segments freed = freed_segments::cached);

  const heap_name& name() const;
  /// Elements that are zero. Throws system_failure.
  tensor allocate(shape extents, dtype type);
  /// Elements of any value.
  tensor empty(shape extents, dtype type);

  /// Where bytes of this process are, in a form that other processes understand.
  struct location {
    std::shared_ptr<const shared_segment> segment;
    std::uint64_t offset = 0;  ///< in its segment, in bytes
  };
  /// Nothing if the bytes are not all in one segment of this heap.
  std::optional<location> locate(std::span<const std::byte> bytes) const;

  /// A segment for other uses, with an id of this process.
  std::shared_ptr<shared_segment> make_segment(std::size_t size_bytes);

  /// Moves these bytes to fresh pages of a new segment, at the same address and with the same contents.
  /// Processes that have mapped the old segment read and write memory that is no longer used. No other
  /// thread may write to the bytes meanwhile, and the pages must hold no other tensor. Does nothing to bytes
  /// that are not in this heap. Throws system_failure.
  void revoke(std::span<const std::byte> bytes);

  /// Whether take_released would return any. Cheap.
  bool has_released() const;
  /// Whether tensors of the heap are in the segment, or may be again.
  bool has_segment(std::uint64_t id) const;
  /// The ids of segments that were freed since the last call: other processes can unmap them.
  std::vector<std::uint64_t> take_released();
  /// Returns cached segments to the system.
  void release_cached();
  shared_heap_statistics statistics() const;

 private:
  class state;
  std::shared_ptr<state> state_;
};

}  // namespace troupe::shared_memory
