#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "troupe/collective/calls/network_sizes.hpp"

namespace troupe::collective {

class network_fabric;
class progress_engine;

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
  /// The network interface that UCX uses. UCX does not authenticate, so between hosts it should be the
  /// interface of a private network.
  std::string interface = "lo";
  group_path path = group_path::nearest;
  network_sizes sizes = {};
  /// How long a process that ends waits until its last messages have been sent and, if it has aborted groups,
  /// the others have aborted them too.
  std::chrono::milliseconds flush_timeout = std::chrono::milliseconds(200);
  /// How long a member that aborts a group waits for those that take part in its transfers before it ends all
  /// connections of its process (network_fabric). Shorter: a member that is stopped delays the abort less.
  /// Longer: a process that is only slow is less often taken for one that is stopped.
  std::chrono::milliseconds answer_timeout = std::chrono::milliseconds(1000);
  /// How long a member whose call has timed out waits for the others' failure reports.
  std::chrono::milliseconds report_timeout = std::chrono::milliseconds(300);
};

/// The network fabric of a process, over the job's network interface. Made by the first group that needs it,
/// since that takes some hundred milliseconds. Each generation has one of its own, so that no message of a
/// generation comes into the next. The one before ends with its last group. Thread-safe.
class network_context {
 public:
  /// `engine` outlives it.
  network_context(network_options options, progress_engine& engine);
  ~network_context();
  network_context(const network_context&) = delete;
  network_context& operator=(const network_context&) = delete;

  const network_options& options() const { return options_; }
  /// The fabric of a generation, which does not decrease from call to call. Throws ucx_error.
  std::shared_ptr<network_fabric> fabric(std::uint64_t generation);

 private:
  struct shared_context;
  network_options options_;
  progress_engine& engine_;
  std::mutex mutex_;                         // guards the rest
  std::unique_ptr<shared_context> context_;  ///< outlives the fabrics
  std::uint64_t generation_ = 0;
  std::shared_ptr<network_fabric> fabric_;  ///< of that generation; null: none was needed yet
};

}  // namespace troupe::collective
