#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "troupe/collective/shm/shared_segment.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe {

struct shared_heap_statistics {
  std::size_t current = 0;            ///< bytes held by tensors
  std::size_t peak = 0;               ///< the most that `current` was
  std::size_t cached = 0;             ///< bytes freed by tensors and kept for the next ones
  std::uint64_t num_from_system = 0;  ///< allocations that the cache could not serve
  std::uint64_t num_revoked = 0;      ///< tensors whose pages were replaced after a failure
};

/// Allocates tensors in memory that other processes of the host can map: one segment for each tensor. A freed
/// segment is cached for the next tensor of its size. Each segment needs a file descriptor (`ulimit -n`), so
/// small tensors, whose elements groups send inline, are ordinary memory. Tensors may outlive the heap.
/// Thread-safe.
class shared_heap {
 public:
  shared_heap();

  /// Elements that are zero. Throws system_failure.
  tensor allocate(shape extents, dtype type);
  /// Elements of any value.
  tensor empty(shape extents, dtype type);

  /// Where bytes of this process are, in a form that other processes understand.
  struct location {
    std::shared_ptr<const shared_segment> segment;
    std::uint64_t offset = 0;  ///< bytes
  };
  /// Nothing if the bytes are not all in one segment of this heap.
  std::optional<location> locate(std::span<const std::byte> bytes) const;

  /// A segment for other uses, with an id of this process.
  std::shared_ptr<shared_segment> make_segment(std::size_t size_bytes);

  /// Moves these bytes to fresh pages of a new segment, at the same address and with the same contents.
  /// Processes that have mapped the old segment read and write memory that nobody uses any more. No other
  /// thread may write to the bytes meanwhile, and the pages must hold no other tensor. Does nothing to bytes
  /// that are not in this heap. Throws system_failure.
  void revoke(std::span<const std::byte> bytes);

  /// The ids of segments that were freed since the last call: other processes can unmap them.
  std::vector<std::uint64_t> take_released();
  /// Returns cached segments to the system.
  void release_cached();
  shared_heap_statistics statistics() const;

 private:
  class state;
  std::shared_ptr<state> state_;
};

}  // namespace troupe
