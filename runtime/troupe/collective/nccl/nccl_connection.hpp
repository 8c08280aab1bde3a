#pragma once
#include <cuda_runtime_api.h>

#include <optional>
#include <string>

#include "troupe/collective/nccl/nccl_functions.hpp"
#include "troupe/collective/store.hpp"
#include "troupe/tensor/device.hpp"

namespace troupe {

/// A communicator of NCCL that never blocks, and the stream on which its calls run one after the other.
class nccl_connection {
 public:
  /// Member 0 leaves NCCL's unique id under `key`. Begins to connect; is_ready() goes on.
  nccl_connection(device gpu, store& place, std::string key, int num_members, int member);
  /// Ends it in peace, or at once if it was aborted.
  ~nccl_connection();
  nccl_connection(const nccl_connection&) = delete;
  nccl_connection& operator=(const nccl_connection&) = delete;

  /// Whether all members have come. Throws nccl_error.
  bool is_ready();
  /// What is queued on the GPU now ends before the next call begins.
  void follow_queued_work();
  /// The call that was issued last is marked; has_ended() tells when the GPU has done it.
  void mark_end();
  bool has_ended();
  /// Whether NCCL has taken the call that was issued last. Throws nccl_error.
  bool is_issued();
  /// Afterwards no call of it touches memory.
  void abort() noexcept;

  ncclComm_t communicator() const { return communicator_; }
  cudaStream_t stream() const { return stream_; }
  int member() const { return member_; }
  int num_members() const { return num_members_; }

 private:
  std::optional<ncclUniqueId> find_id();

  device gpu_;
  store& place_;
  std::string key_;
  int num_members_, member_;
  ncclComm_t communicator_ = nullptr;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t queued_ = nullptr, end_ = nullptr;
  bool is_aborted_ = false;
};

}  // namespace troupe
