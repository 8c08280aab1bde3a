#pragma once
#include <caf/actor.hpp>
#include <map>
#include <mutex>

#include "troupe/transport/transport.hpp"

namespace troupe {

/// Says which local actor an arriving tensor is for, so that the transport hands it over without a hop.
/// Thread-safe.
class stage_directory {
 public:
  struct receivers {
    caf::actor supervisor;
    caf::actor replica_keeper;
    caf::actor scheduler;               ///< of this node, for parameters
    std::map<int, caf::actor> devices;  ///< by local stage
    caf::actor gatherer = {};
    std::uint32_t job = 0;  ///< parts of other jobs are dropped
  };
  void set(receivers all);
  void set_scheduler(caf::actor scheduler);
  /// Sends the tensor to whoever it is for; drops it if there is nobody (a node that has no job yet).
  void deliver(const tensor_tag& tag, tensor value);
  void close() { set({}); }

 private:
  std::mutex mutex_;
  receivers receivers_;
};

}  // namespace troupe
