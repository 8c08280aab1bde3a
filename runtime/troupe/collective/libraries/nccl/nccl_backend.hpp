#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "troupe/collective/libraries/library_backend.hpp"
#include "troupe/collective/libraries/nccl/nccl_connection.hpp"

namespace troupe::collective {

/// The calls of a group over NCCL. The collectives have one connection, and each peer and direction of
/// messages has its own, so that none waits for another. An error of NCCL or CUDA fails the group.
class nccl_backend final : public library_backend {
 public:
  /// On the GPU of `on`. finalize_timeout: how long connections wait for NCCL when they are destroyed. `keys`
  /// outlives it. Throws cuda_error.
  nccl_backend(group_description group, store& keys, std::shared_ptr<nccl_connections> on,
               std::chrono::milliseconds finalize_timeout);

  std::string_view name() const override { return "nccl"; }
  troupe::device device() const override { return on_->device(); }
  algorithm run(const collective_operation& what, std::uint64_t sequence) override;
  tensor allocate(shape extents, dtype type) override {
    return tensor::zeros(std::move(extents), type, device());
  }
  /// Whether the connection for the collectives is ready. Throws nccl_error and cuda_error.
  bool is_ready() { return connection_for({}).is_ready(); }

 private:
  nccl_connection& connection_for(const collective_operation& what);
  bool holds(const std::function<bool()>& state, const collective_operation& what, std::uint64_t sequence);
  [[noreturn]] void fail_with_another(const collective_error& cause, std::uint64_t sequence);
  void close(const collective_error& why) noexcept override;
  std::chrono::microseconds poll_interval() const override { return std::chrono::microseconds(100); }

  store& keys_;
  std::shared_ptr<nccl_connections> on_;
  std::chrono::milliseconds finalize_timeout_;
  collective_operation barrier_;  // the reduction that stands for a barrier
  std::map<std::pair<int, int>, nccl_connection> connections_;
};

}  // namespace troupe::collective
