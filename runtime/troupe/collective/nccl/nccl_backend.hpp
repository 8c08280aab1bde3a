#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <utility>

#include "troupe/collective/library/library_backend.hpp"
#include "troupe/collective/nccl/nccl_connection.hpp"

namespace troupe {

/// Calls over NCCL: the collectives on one connection, messages on one for each peer and direction, so that
/// none waits for another. What NCCL or CUDA refuses fails the group.
class nccl_backend final : public library_backend {
 public:
  /// Connections wait for NCCL no longer than `longest_end` when they end. `rendezvous` outlives it. Throws
  /// cuda_error.
  nccl_backend(group_description group, store& rendezvous, device gpu, std::chrono::milliseconds longest_end);

  std::string_view name() const override { return "nccl"; }
  device where() const override { return gpu_; }
  void refuse_in_recording(std::string_view what) const override;
  algorithm run(const collective_operation& what, std::uint64_t sequence) override;
  tensor allocate(shape extents, dtype type) override {
    return tensor::zeros(std::move(extents), type, gpu_);
  }
  /// Whether the connection for the collectives is there. Throws nccl_error and cuda_error.
  bool is_ready() { return connection_for({}).is_ready(); }

 private:
  nccl_connection& connection_for(const collective_operation& what);
  bool holds(const std::function<bool()>& state, const collective_operation& what, std::uint64_t sequence);
  void issue(nccl_connection& on, const collective_operation& what);
  void break_off() noexcept override;
  std::chrono::microseconds patience() const override { return std::chrono::microseconds(100); }

  store& rendezvous_;
  device gpu_;
  std::chrono::milliseconds longest_end_;
  collective_operation barrier_;  // what is reduced where members only meet
  std::map<std::pair<int, int>, nccl_connection> connections_;
};

}  // namespace troupe
