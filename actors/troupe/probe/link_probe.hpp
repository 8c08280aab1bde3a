#pragma once
#include <memory>
#include <string>

#include "troupe/probe/messages.hpp"

namespace troupe {

struct link_probe_options {
  int peer_rank = 0;
  std::uint64_t generation = 0;
  transport* link = nullptr;  ///< connected in this generation; outlives the probe
};

/// A probe actor in an actor system of its own, seen from the outside. Both processes make one.
class link_probe {
 public:
  static std::unique_ptr<link_probe> start(const link_probe_options& options);
  virtual ~link_probe() = default;
  /// Sends to the other's probe and waits for its answers. Throws std::runtime_error if lost() was called.
  virtual probe_times ask(const probe_plan& plan) = 0;
  /// Answers the other's from now on.
  virtual void answer(std::chrono::nanoseconds spin) = 0;
  /// To be called by transport_events::on_tensor. Thread-safe.
  virtual void deliver(const tensor_tag& tag, tensor value) = 0;
  /// The other process is gone. Thread-safe.
  virtual void lost(const std::string& cause) = 0;
};

}  // namespace troupe
