#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "troupe/collective/shm/memory/control_block.hpp"
#include "troupe/ops/tree_reduction.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::collective::shm {

/// How to store `size_bytes` of results: beyond the size of the caches with streaming stores, around them.
inline store_kind store_for(std::size_t size_bytes) {
  return size_bytes >= (std::size_t{8} << 20) ? store_kind::streaming : store_kind::cached;
}

/// The same for bytes that are copied from or for another core. Streaming pays earlier here, since cached
/// stores take over one cache line after the other from that core.
inline store_kind store_for_fetched(std::size_t size_bytes) {
  return size_bytes >= (std::size_t{1} << 16) ? store_kind::streaming : store_kind::cached;
}

/// The memory through which the members of a group access each other's tensors: one address space for
/// threads, mapped segments for processes. Used by one thread at a time, but for `allocate`.
class member_memory {
 public:
  virtual ~member_memory() = default;
  /// Where these elements are, for other members; not reachable if they are in private memory. Other members
  /// may resolve the location from then on.
  virtual buffer_location locate(std::span<const std::byte> elements) = 0;
  /// The address of another member's location in this process. Valid until the algorithm waits the next time.
  /// Throws collective_error or std::runtime_error if it cannot be accessed.
  virtual std::byte* resolve(int member, const buffer_location& location) = 0;
  /// Reachable elements, zero at first. From any thread.
  virtual tensor allocate(shape extents, dtype type) = 0;
  /// Reachable elements of any value.
  virtual tensor empty(shape extents, dtype type) = 0;
  /// Takes these elements back after a call has failed. When it returns, members that have not noticed the
  /// failure yet can neither change them nor see changes. `block`: of the group, which has been aborted.
  virtual void revoke(std::span<const std::byte> elements, const control_block& block) = 0;

  /// Revokes all elements that are exposed.
  void revoke_all(const control_block& block);

 private:
  friend class exposed_range;
  std::vector<std::span<const std::byte>> exposed_;
};

/// While it lives, other members may access these elements, and a failing group revokes them.
class exposed_range {
 public:
  exposed_range() = default;
  exposed_range(member_memory& memory, std::span<const std::byte> elements);
  exposed_range(exposed_range&& other) noexcept;
  exposed_range& operator=(exposed_range&& other) noexcept;
  ~exposed_range();

 private:
  member_memory* memory_ = nullptr;
  const std::byte* first_ = nullptr;
};

/// Which of a call's tensors other members access.
enum class exposure : std::uint8_t { input, output, both };

/// The tensors of one member's call that other members may access while it lives. A tensor in private memory
/// is replaced by a reachable copy.
class exposed_tensors {
 public:
  exposed_tensors(member_memory& memory, const collective_operation& what, exposure which);

  buffer_location input_location() const { return input_location_; }
  buffer_location output_location() const { return output_location_; }
  const std::byte* input() const { return input_.bytes().data(); }
  std::byte* output() { return output_.bytes().data(); }
  /// Copies the result from the reachable copy to the caller's tensor, if there is a copy.
  void copy_output();

 private:
  const collective_operation& what_;
  tensor input_, output_;
  exposed_range exposed_input_, exposed_output_;
  buffer_location input_location_, output_location_;
};

}  // namespace troupe::collective::shm
