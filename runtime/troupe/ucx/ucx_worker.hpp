#pragma once
#include <ucp/api/ucp.h>

#include <cstddef>
#include <span>
#include <vector>

namespace troupe::ucx {

/// Owns a UCX worker that can sleep. Not thread-safe: the owner serialises all calls, from any thread.
class ucx_worker {
 public:
  /// Throws ucx_error.
  explicit ucx_worker(ucp_context_h context);
  /// Requests may still be in flight, to peers that may be dead: it does not wait for them. Their handles
  /// must not be touched from then on, and their callbacks may run during the call.
  ~ucx_worker();
  ucx_worker(const ucx_worker&) = delete;
  ucx_worker& operator=(const ucx_worker&) = delete;

  ucp_worker_h get() const { return worker_; }
  std::vector<std::byte> address() const;
  /// Becomes readable when something happens after a successful arm().
  int event_fd() const { return event_fd_; }
  void handle_messages(unsigned id, ucp_am_recv_callback_t callback, void* argument);
  /// Whether anything was done.
  bool progress() { return ucp_worker_progress(worker_) != 0; }
  /// False: there is work already, or work that makes no event, so do not sleep.
  bool arm() { return ucp_worker_arm(worker_) == UCS_OK; }

 private:
  ucp_worker_h worker_ = nullptr;
  int event_fd_ = -1;
};

/// The parameters of an endpoint to a worker's address, which must outlive them.
ucp_ep_params_t endpoint_params(std::span<const std::byte> address);

}  // namespace troupe::ucx
