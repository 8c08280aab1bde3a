#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "troupe/collective/ucx/shared_segment.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe {

struct shared_heap_statistics {
  std::size_t current = 0;            ///< bytes held by tensors
  std::size_t peak = 0;               ///< the most that `current` was
  std::size_t cached = 0;             ///< bytes freed by tensors and kept for the next ones
  std::uint64_t num_from_system = 0;  ///< allocations that the cache could not serve
  std::uint64_t num_withdrawn = 0;    ///< tensors whose pages were replaced after a failure
};

/// Tensors in memory that other processes of the host can be given: one segment each, kept for the next
/// tensor of that size when it is freed. Each needs a descriptor as long as it exists (`ulimit -n`), so small
/// ones, which groups hand over by value, are ordinary memory. Tensors may outlive the heap. Thread-safe.
class shared_heap {
 public:
  shared_heap();

  /// Elements that are zero. Throws system_failure.
  tensor allocate(shape extents, dtype type);
  /// Elements of any value.
  tensor empty(shape extents, dtype type);

  /// Where bytes of this process are, for others.
  struct place {
    std::shared_ptr<const shared_segment> segment;
    std::uint64_t offset = 0;  ///< bytes
  };
  /// Nothing if they do not lie in one segment of this heap.
  std::optional<place> find(std::span<const std::byte> bytes) const;

  /// A segment that is no tensor's, under a number of this process.
  std::shared_ptr<shared_segment> make_bare_segment(std::size_t size_bytes);

  /// Gives these bytes fresh pages at the same address, with the same contents, in a new segment: whoever
  /// has mapped the old one reads and writes memory that is nobody's. Other threads must not write to them
  /// meanwhile; what lies in the same pages belongs to the same tensor. Nothing happens to bytes that are not
  /// this heap's.
  void withdraw(std::span<const std::byte> bytes);

  /// Numbers of segments that ended since the last time: others need not keep them mapped.
  std::vector<std::uint64_t> take_ended();
  /// Gives what is cached back to the system.
  void release_cached();
  shared_heap_statistics statistics() const;

 private:
  class blocks;
  std::shared_ptr<blocks> blocks_;
};

}  // namespace troupe
