#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>

#include "troupe/tensor/tensor.hpp"

namespace troupe::actors::gatherer {

/// Caches the tensors that calls delivered to programs, for processes that are started again and repeat these
/// calls after the weights have changed. Of N processes, rank i % N and its right neighbour cache tensor i,
/// so the loss of one process loses no tensor, and each process holds 2/N of them.
///
/// The newest call's tensors are always cached; those of older calls while all together take at most
/// `limit_bytes`. Each tensor counts with its elements and `tensor_overhead_bytes`, so that memory is bounded
/// for any number of small tensors.
class gathered_cache {
 public:
  static constexpr std::size_t tensor_overhead_bytes = 512;
  using by_index = std::map<std::uint32_t, tensor>;
  gathered_cache(int rank, int world_size, std::size_t limit_bytes)
      : rank_(rank), world_size_(world_size), limit_bytes_(limit_bytes) {}

  /// Adds this rank's part of a call's tensors, by index in the call. Does nothing for a known call.
  void add(std::uint32_t call, const by_index& tensors);
  /// Empty if nothing of the call is cached.
  by_index find(std::uint32_t call) const;
  std::size_t size_bytes() const { return size_bytes_; }

 private:
  struct cached_call {
    std::uint32_t call = 0;
    by_index tensors;
    std::size_t size_bytes = 0;
  };
  bool is_mine(std::uint32_t index) const;

  int rank_, world_size_;
  std::size_t limit_bytes_;
  std::deque<cached_call> calls_;  ///< oldest first
  std::size_t size_bytes_ = 0;
};

}  // namespace troupe::actors::gatherer
