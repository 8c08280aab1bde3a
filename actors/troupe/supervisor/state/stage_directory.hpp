#pragma once
#include <caf/actor.hpp>
#include <map>
#include <memory>
#include <mutex>

#include "troupe/execution/inbox/arrivals.hpp"
#include "troupe/layout/part_id.hpp"
#include "troupe/tensor/memory_account.hpp"
#include "troupe/transport/transport.hpp"

namespace troupe::actors::supervisor {

/// Where the tensors of a cell go.
struct device_receiver {
  caf::actor device;
  memory_account account = {};                                   ///< charged from a tensor's arrival on
  std::shared_ptr<execution::arrivals> from_replicas = nullptr;  ///< see device_options; required
};

/// Maps arriving tensors to local actors, so that the transport's thread sends each directly to its receiver.
/// Thread-safe.
class stage_directory {
 public:
  struct receivers {
    caf::actor supervisor;
    caf::actor peer_copy_store;
    std::map<layout::cell, device_receiver> devices;  ///< by the cells that are here
    caf::actor gatherer = {};
    std::uint32_t job = 0;  ///< states of other jobs are dropped
  };
  void set(receivers all);
  /// Sends the tensor to its receiver; drops it if there is none (before the job is defined).
  void deliver(const transport::tensor_tag& tag, tensor value);
  void close() { set({}); }

 private:
  std::mutex mutex_;
  receivers receivers_;
};

}  // namespace troupe::actors::supervisor
