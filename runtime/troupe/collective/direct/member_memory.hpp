#pragma once
#include <span>
#include <vector>

#include "troupe/collective/direct/board.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::direct {

/// Which memory the members of a group share. Used by one thread at a time, but for `allocate`.
class member_memory {
 public:
  virtual ~member_memory() = default;
  /// Where others find these elements; not reachable if they cannot. Others may look for them afterwards.
  virtual buffer_place place_of(std::span<const std::byte> elements) = 0;
  /// The bytes there, in this process, until the algorithm waits the next time. Throws collective_error or
  /// std::runtime_error if they cannot be had.
  virtual std::byte* find(int member, const buffer_place& place) = 0;
  /// Reachable elements, zero at first. From any thread.
  virtual tensor allocate(shape extents, dtype type) = 0;
  /// Reachable elements of any value.
  virtual tensor empty(shape extents, dtype type) = 0;
  /// A call failed in which these elements were within reach of others: whatever members do from now on that
  /// have not noticed yet, it does not change them any more, nor do they see changes.
  /// `at` is where they met, and has been aborted.
  virtual void withdraw(std::span<const std::byte> elements, const board& at) = 0;

  /// withdraw() of all that is in_reach.
  void withdraw_all(const board& at);

 private:
  friend class in_reach;
  std::vector<std::span<const std::byte>> reached_;
};

/// While it lives, others may reach these elements, and a failing group withdraws them.
class in_reach {
 public:
  in_reach() = default;
  in_reach(member_memory& memory, std::span<const std::byte> elements);
  in_reach(in_reach&& other) noexcept;
  in_reach& operator=(in_reach&& other) noexcept;
  ~in_reach();

 private:
  member_memory* memory_ = nullptr;
  const std::byte* first_ = nullptr;
};

}  // namespace troupe::direct
