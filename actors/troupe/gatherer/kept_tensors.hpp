#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// What calls gave to the programs of all processes, for those that are started again: they make the same
/// calls again, and the weights have changed since. Each tensor is kept by two neighbours, so that one lost
/// process takes none away; that is two N-th of it all in each of N processes.
///
/// The newest call's tensors are always kept; older ones as long as all together are at most `limit_bytes`.
class kept_tensors {
 public:
  using by_place = std::map<std::uint32_t, tensor>;
  kept_tensors(int rank, int world_size, std::size_t limit_bytes)
      : rank_(rank), world_size_(world_size), limit_bytes_(limit_bytes) {}

  /// Takes this rank's part of a call's tensors. A call that is known keeps what it has.
  void add(std::uint32_t call, const by_place& tensors);
  /// Empty if nothing of the call is kept.
  by_place find(std::uint32_t call) const;
  std::size_t size_bytes() const { return size_bytes_; }

 private:
  struct kept_call {
    std::uint32_t call = 0;
    by_place tensors;
    std::size_t size_bytes = 0;
  };
  bool is_mine(std::uint32_t place) const;

  int rank_, world_size_;
  std::size_t limit_bytes_;
  std::deque<kept_call> calls_;  ///< oldest first
  std::size_t size_bytes_ = 0;
};

}  // namespace troupe
