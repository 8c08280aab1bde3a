#pragma once
#include <caf/actor.hpp>
#include <map>
#include <mutex>

#include "troupe/transport/transport.hpp"

namespace troupe {

/// Maps arriving tensors to local actors, so that the transport's thread sends each directly to its receiver.
/// Thread-safe.
class stage_directory {
 public:
  struct receivers {
    caf::actor supervisor;
    caf::actor replica_keeper;
    caf::actor scheduler;               ///< of this node, for parameters
    std::map<int, caf::actor> devices;  ///< by local stage
    caf::actor gatherer = {};
    std::uint32_t job = 0;  ///< states of other jobs are dropped
  };
  void set(receivers all);
  void set_scheduler(caf::actor scheduler);
  /// Sends the tensor to its receiver; drops it if there is none (before the job is defined).
  void deliver(const tensor_tag& tag, tensor value);
  void close() { set({}); }

 private:
  std::mutex mutex_;
  receivers receivers_;
};

}  // namespace troupe
