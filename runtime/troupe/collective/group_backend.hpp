#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "troupe/collective/network/network_sizes.hpp"

namespace troupe {

class communicator;
class store;
struct communicator_options;
struct group_description;

/// Which process this is, for who makes its groups.
struct group_maker_options {
  int rank = 0, world_size = 1;
  int local_rank = 0;  ///< on its host
  /// By which members on other hosts are reached.
  std::string network_interface = "lo";
  /// Of ucx, which algorithm carries a call between hosts. The same in all processes.
  network_sizes sizes = {};
};

/// What the groups of this process share that one backend carries. For one thread; outlives its groups.
class group_maker {
 public:
  virtual ~group_maker() = default;
  /// This member's end of a group; the others make theirs with the same name and ranks and find each other in
  /// `keys`, which outlives it. Throws collective_error when they do not come, and bad_input.
  virtual std::unique_ptr<communicator> make(const group_description& group, store& keys,
                                             const communicator_options& options) = 0;
};

/// A backend of groups, as a program that links it hands it to its World: gloo_groups(), every_backend(), ...
struct group_backend {
  std::string name;  ///< in --backend
  /// Called once by all processes of a job, before they join it. Throws bad_input with what is missing here.
  std::function<std::unique_ptr<group_maker>(const group_maker_options&)> begin = nullptr;
  /// A group of one process is of this backend as well; otherwise it needs none.
  bool makes_groups_of_one = false;
};

}  // namespace troupe
