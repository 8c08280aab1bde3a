#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "troupe/collective/calls/group.hpp"
#include "troupe/collective/calls/network_sizes.hpp"

namespace troupe {

class communicator;
namespace collective {
class store;
}  // namespace collective
struct communicator_options;

/// What a backend needs to know about this process.
struct backend_options {
  world_rank rank = 0;
  int world_size = 1;
  int local_rank = 0;  ///< index among the processes on its host
  /// Over which members on other hosts are reached.
  std::string network_interface = "lo";
  /// Of ucx: which algorithm a call between hosts takes. The same in all processes.
  collective::network_sizes sizes = {};
  /// Of nccl: the GPU of this process; none: that of its local rank.
  std::optional<int> gpu = {};
};

/// A backend in this process: what all its groups share, and what makes them. Outlives its groups.
class backend_instance {
 public:
  virtual ~backend_instance() = default;
  /// Makes this member's communicator of a group. The other members call this with the same name and ranks,
  /// and find each other in `keys`, which outlives the group. Throws collective_error if they do not come,
  /// and bad_input. Two threads may each make one at a time: the program, and its job for its replicas.
  virtual std::unique_ptr<communicator> make(const group_description& group, collective::store& keys,
                                             const communicator_options& options) = 0;
};

/// A backend that a program links and gives to its World: gloo_groups(), every_backend(), ...
struct group_backend {
  std::string name;  ///< its name in --backend
  /// Starts the backend. Called once by all processes of a job, before they join it. Throws bad_input that
  /// says what is missing on this host.
  std::function<std::unique_ptr<backend_instance>(const backend_options&)> start = nullptr;
  /// Whether groups of one process are made by this backend too. Otherwise they need no backend.
  bool makes_groups_of_one = false;
};

}  // namespace troupe
