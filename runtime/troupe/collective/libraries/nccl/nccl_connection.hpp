#pragma once
#include <cuda_runtime_api.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "troupe/collective/libraries/nccl/nccl_connections.hpp"
#include "troupe/collective/libraries/nccl/nccl_functions.hpp"
#include "troupe/collective/rendezvous/store.hpp"

namespace troupe::collective {

/// One end of a connection.
struct nccl_endpoint {
  std::string key;  ///< in the store: the same for all members, unique for the connection
  int num_members = 1, member = 0;
};

/// Another group on the GPU has failed, and has aborted this connection with its own.
class aborted_with_another : public std::runtime_error {
 public:
  explicit aborted_with_another(collective_error cause)
      : std::runtime_error(cause.what()), cause_(std::move(cause)) {}
  const collective_error& cause() const { return cause_; }

 private:
  collective_error cause_;
};

/// A non-blocking NCCL communicator, and the stream on which its calls run one after the other. Its functions
/// make their GPU the current one of the thread while they run. Used by one thread at a time, its owner; but
/// a failing group may abort those of other groups (nccl_connections): they then throw aborted_with_another.
class nccl_connection {
 public:
  /// On the GPU of `all`. Member 0 puts NCCL's unique id into the store. is_ready() then connects step by
  /// step. finalize_timeout: how long the destructor waits for NCCL. `keys` outlives it. Throws nccl_error
  /// and cuda_error.
  nccl_connection(std::shared_ptr<nccl_connections> all, store& keys, nccl_endpoint end,
                  std::chrono::milliseconds finalize_timeout);
  /// Finalises the communicator if all members are connected and no call is in flight; otherwise aborts it.
  ~nccl_connection();
  nccl_connection(const nccl_connection&) = delete;
  nccl_connection& operator=(const nccl_connection&) = delete;

  /// Whether all members are connected. Throws nccl_error, also if the connection was aborted.
  bool is_ready();
  /// Makes a call, which begins after the work that is queued on the GPU now. Throws nccl_error, cuda_error.
  void issue(const std::function<void()>& call);
  /// Whether NCCL has accepted the last call. No other call may be issued before. Throws nccl_error.
  bool is_issued();
  /// Records an event after the last call; has_ended() says whether the GPU has reached it. They throw
  /// nccl_error and cuda_error.
  void mark_end();
  bool has_ended();

  /// For nccl_connections, which holds its lock. Whether a call is in flight.
  bool has_work_in_flight();
  /// From now on the functions throw aborted_with_another, or nccl_error without a cause.
  void set_aborted(std::optional<collective_error> why);
  bool is_aborted() const { return is_aborted_; }
  /// The communicator, which is the caller's to abort.
  ncclComm_t release() { return std::exchange(communicator_, nullptr); }

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
  void require_not_aborted() const;
  ncclResult_t state() const;
  ncclResult_t locked_state() const;
  bool is_accepted() const;
  bool begin_finalizing() noexcept;
  bool finalize() noexcept;
  int gpu() const { return all_->device().index; }

  std::shared_ptr<nccl_connections> all_;
  store& keys_;
  nccl_endpoint endpoint_;
  std::chrono::milliseconds finalize_timeout_;
  owned_stream stream_;
  owned_event queued_, end_;

  // Guarded by all_->lock().
  ncclComm_t communicator_ = nullptr;  ///< null until the unique id is known, and after the end
  bool is_aborted_ = false;
  /// Why it was aborted, together with another group on its GPU.
  std::optional<collective_error> aborted_with_;
  bool is_in_flight_ = false, is_end_marked_ = false;
};

}  // namespace troupe::collective
