#pragma once
#include <caf/actor.hpp>
#include <map>
#include <mutex>

#include "troupe/layout/cell.hpp"
#include "troupe/tensor/memory_account.hpp"
#include "troupe/transport/transport.hpp"

namespace troupe {

/// Maps arriving tensors to local actors, so that the transport's thread sends each directly to its receiver.
/// Thread-safe.
class stage_directory {
 public:
  struct receivers {
    caf::actor supervisor;
    caf::actor replica_keeper;
    caf::actor scheduler;                ///< of this node, for parameters
    std::map<cell, caf::actor> devices;  ///< by the cells that are here
    caf::actor gatherer = {};
    std::uint32_t job = 0;                         ///< states of other jobs are dropped
    std::map<cell, memory_account> accounts = {};  ///< of the devices, charged from a tensor's arrival on
  };
  void set(receivers all);
  void set_scheduler(caf::actor scheduler);
  /// Sends the tensor to its receiver; drops it if there is none (before the job is defined).
  void deliver(const tensor_tag& tag, tensor value);
  void close() { set({}); }

 private:
  void charge(const cell& stage, const tensor& value) const;

  std::mutex mutex_;
  receivers receivers_;
};

}  // namespace troupe
