#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "troupe/collective/net/network_sizes.hpp"

struct ucp_context;

namespace troupe {

/// How the members of a group communicate.
enum class group_path : std::uint8_t {
  nearest,  ///< through shared memory on one host, over the network between hosts
  network   ///< always over the network, for tests and measurements
};

/// Options of the groups of one process. The same on all members, but for `host`.
struct network_options {
  /// The name of this process's host. Processes with the same name use shared memory with each other. Empty:
  /// a name made of the kernel's boot id, network namespace and user. For tests and measurements on one
  /// machine.
  std::string host = {};
  /// The network interface that UCX uses. UCX authenticates nobody, so between hosts it should be the
  /// interface of a private network.
  std::string interface = "lo";
  group_path path = group_path::nearest;
  network_sizes sizes = {};
  /// How long a member that aborts or ends a group waits until its last messages have been sent.
  std::chrono::milliseconds flush_timeout = std::chrono::milliseconds(200);
  /// How long a member whose call has timed out waits for the others' failure reports.
  std::chrono::milliseconds report_timeout = std::chrono::milliseconds(300);
};

/// The UCX context of all groups of a process, over the job's network interface. Initialised by the first
/// group that needs it, since that takes some hundred milliseconds. Thread-safe.
class network_context {
 public:
  explicit network_context(network_options options);
  ~network_context();
  network_context(const network_context&) = delete;
  network_context& operator=(const network_context&) = delete;

  const network_options& options() const { return options_; }
  /// Throws ucx_error.
  ucp_context* get();

 private:
  struct owned;
  network_options options_;
  std::mutex mutex_;
  std::unique_ptr<owned> owned_;
};

}  // namespace troupe
