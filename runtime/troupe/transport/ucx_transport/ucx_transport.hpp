#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "troupe/transport/send_delay.hpp"
#include "troupe/transport/transport.hpp"
#include "troupe/ucx/ucx_error.hpp"

namespace troupe::transport {

struct ucx_transport_options {
  int rank = 0;
  /// How many processes may connect at the same time.
  int world_size = 1;
  /// The job's secret: keys the authentication code of every frame. At least 16 bytes.
  std::vector<std::byte> secret;
  /// Network interface UCX may use: "lo" for jobs on one host, the name of a private network's interface
  /// otherwise.
  std::string interface = "lo";
  /// UCX transports for tensors. Empty: shared memory on "lo", shared memory and TCP on any other interface,
  /// and "cma" where processes may read each other's memory.
  /// Without "sysv,cma" tensors go over TCP on one host too, for processes that share no memory. Never
  /// "posix": its segments are identified by file descriptors of their owner. A peer of an older generation
  /// may take a segment of a new generation for an old one and write into it. TCP has a hazard of its own: a
  /// peer that dies within the few milliseconds in which UCX 1.13 connects to it may make UCX abort this
  /// process too.
  std::string data_transports;
  /// Covers tensor bytes by the authentication code too. Costs a pass over every tensor on both sides.
  bool verify_frames = false;
  /// How long the progress thread polls after the last event before it sleeps on the worker's descriptor.
  /// Longer: lower latency, and a core that others cannot use.
  std::chrono::microseconds spin = std::chrono::microseconds(100);
  /// Of tensors to other processes.
  send_delay_ptr delay = nullptr;
  /// Follows the cause of a control connection that cannot be made.
  std::string connection_advice = {};
  /// Called in allocate_shared, on its thread, where the system has no descriptor or no memory to share: the
  /// tensor will be copied. May be empty.
  std::function<void(const std::string& cause)> on_unshared_memory = nullptr;
  /// Called in make_ucx_transport where the system lets no other process read this one's memory: tensors from
  /// here will be copied once more. May be empty.
  std::function<void(const std::string& cause)> on_unreadable_memory = nullptr;
};

/// UCX between processes. `events` must outlive it. Throws std::invalid_argument for a short secret and
/// ucx_error if UCX cannot be initialised, bad_input if there is no such interface. A child that the process
/// forks afterwards must exec and not use UCX.
std::unique_ptr<transport> make_ucx_transport(const ucx_transport_options& options, transport_events& events);

}  // namespace troupe::transport
