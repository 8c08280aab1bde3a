#pragma once
#include <cuda_runtime_api.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "troupe/collective/nccl/nccl_functions.hpp"
#include "troupe/collective/store.hpp"
#include "troupe/tensor/device.hpp"

namespace troupe {

/// Which end of which connection.
struct nccl_end {
  std::string key;  ///< in the store: the same for all members, and this connection's alone
  int num_members = 1, member = 0;
};

/// A communicator of NCCL that never blocks, and the stream on which its calls run one after the other. Its
/// functions make their GPU the thread's current one while they run. One thread at a time uses it.
class nccl_connection {
 public:
  /// Member 0 leaves NCCL's unique id under the key. Begins to connect; is_ready() goes on. When it goes it
  /// waits for NCCL no longer than `longest_end`. `place` outlives it. Throws nccl_error and cuda_error.
  nccl_connection(device gpu, store& place, nccl_end end, std::chrono::milliseconds longest_end);
  /// Ends it in peace where all members have come and no call is in flight; otherwise at once.
  ~nccl_connection();
  nccl_connection(const nccl_connection&) = delete;
  nccl_connection& operator=(const nccl_connection&) = delete;

  /// Whether all members have come. Throws nccl_error, also if it was aborted.
  bool is_ready();
  /// What is queued on the GPU now ends before the next call begins.
  void follow_queued_work();
  /// Whether NCCL has taken the call that was issued last: nothing else is asked of it before. Throws
  /// nccl_error.
  bool is_issued();
  /// The call that was issued last is marked; has_ended() tells when the GPU has done it. They throw
  /// nccl_error and cuda_error.
  void mark_end();
  bool has_ended();
  /// Afterwards no call of these touches memory. They end within one group of NCCL: the abort of one may wait
  /// for the whole GPU, where calls of the others wait for members that never come. All are of one GPU.
  static void abort(std::vector<nccl_connection*> connections) noexcept;

  ncclComm_t communicator() const { return communicator_; }
  cudaStream_t stream() const { return stream_.get(); }
  int member() const { return end_point_.member; }
  int num_members() const { return end_point_.num_members; }

 private:
  struct destroy {
    void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
    void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
  };
  using owned_stream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, destroy>;
  using owned_event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, destroy>;
  static owned_stream new_stream();
  static owned_event new_event();

  std::optional<ncclUniqueId> find_id();
  ncclResult_t state() const;
  bool finalize() noexcept;

  device gpu_;
  store& place_;
  nccl_end end_point_;
  std::chrono::milliseconds longest_end_;
  owned_stream stream_;
  owned_event queued_, end_;
  ncclComm_t communicator_ = nullptr;  ///< null before the unique id is there, and once it has ended
  bool is_aborted_ = false;
};

}  // namespace troupe
