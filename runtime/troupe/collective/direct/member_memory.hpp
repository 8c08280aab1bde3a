#pragma once
#include "troupe/collective/direct/board.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::direct {

/// Which memory the members of a group share. Used by one thread at a time, but for `allocate`.
class member_memory {
 public:
  virtual ~member_memory() = default;
  /// Where others find these elements; not reachable if they cannot. Others may look for them afterwards.
  virtual buffer_place place_of(const tensor& elements) = 0;
  /// The bytes there, in this process. Throws collective_error if they cannot be had.
  virtual std::byte* find(int member, const buffer_place& place) = 0;
  /// Reachable elements, zero at first. From any thread.
  virtual tensor allocate(shape extents, dtype type) = 0;
  /// A call failed in which these elements were within reach of others: whatever members do from now on that
  /// have not noticed yet, it does not change them any more.
  /// `at` is where they met, and has been aborted.
  virtual void withdraw(const tensor& elements, const board& at) = 0;
};

}  // namespace troupe::direct
