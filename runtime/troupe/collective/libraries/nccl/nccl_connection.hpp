#pragma once
#include <cuda_runtime_api.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "troupe/collective/group/store.hpp"
#include "troupe/collective/libraries/nccl/nccl_functions.hpp"
#include "troupe/tensor/device.hpp"

namespace troupe {

/// One end of a connection.
struct nccl_endpoint {
  std::string key;  ///< in the store: the same for all members, unique for the connection
  int num_members = 1, member = 0;
};

/// A non-blocking NCCL communicator, and the stream on which its calls run one after the other. Its functions
/// make their GPU the current one of the thread while they run. Used by one thread at a time.
class nccl_connection {
 public:
  /// Member 0 puts NCCL's unique id into the store. is_ready() then connects step by step. finalize_timeout:
  /// how long the destructor waits for NCCL. `keys` outlives it. Throws nccl_error and cuda_error.
  nccl_connection(device gpu, store& keys, nccl_endpoint end, std::chrono::milliseconds finalize_timeout);
  /// Finalises the communicator if all members are connected and no call is in flight; otherwise aborts it.
  ~nccl_connection();
  nccl_connection(const nccl_connection&) = delete;
  nccl_connection& operator=(const nccl_connection&) = delete;

  /// Whether all members are connected. Throws nccl_error, also if the connection was aborted.
  bool is_ready();
  /// The next call will begin after the work that is queued on the GPU now.
  void wait_for_queued_work();
  /// Whether NCCL has accepted the last call. No other call may be issued before. Throws nccl_error.
  bool is_issued();
  /// Records an event after the last call; has_ended() says whether the GPU has reached it. They throw
  /// nccl_error and cuda_error.
  void mark_end();
  bool has_ended();
  /// Aborts connections of one GPU. Afterwards none of their calls accesses memory. All are aborted within
  /// one NCCL group, since the abort of one may wait for all work of the GPU, where calls of the others wait
  /// for members that never come.
  static void abort(std::vector<nccl_connection*> connections) noexcept;

  ncclComm_t communicator() const { return communicator_; }
  cudaStream_t stream() const { return stream_.get(); }
  int member() const { return endpoint_.member; }
  int num_members() const { return endpoint_.num_members; }

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
  store& keys_;
  nccl_endpoint endpoint_;
  std::chrono::milliseconds finalize_timeout_;
  owned_stream stream_;
  owned_event queued_, end_;
  ncclComm_t communicator_ = nullptr;  ///< null until the unique id is known, and after the end
  bool is_aborted_ = false;
};

}  // namespace troupe
