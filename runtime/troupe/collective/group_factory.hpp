#pragma once
#include <memory>
#include <string>

#include "troupe/collective/communicator.hpp"
#include "troupe/collective/store.hpp"
#include "troupe/collective/ucx/network_options.hpp"

namespace troupe {

struct ucx_group_resources;

struct group_factory_options {
  /// "ucx", "local", "gloo", "mpi" or "nccl"
  std::string backend = "ucx";
  /// What the job's processes know and others do not.
  std::string job_token;
  /// How "ucx" reaches members on other hosts.
  network_options between_hosts = {};
};

/// Makes groups with the backend that the job asked for, and keeps what its groups share. For one thread, and
/// outlives its groups.
class group_factory {
 public:
  explicit group_factory(group_factory_options options);
  ~group_factory();

  /// This member's end of a group; the others make theirs with the same name and ranks and find each other in
  /// `keys`, which outlives it. A group of one needs no backend. Throws bad_input for a backend that is not
  /// in this build or cannot carry groups of several processes, and collective_error when the others do not
  /// come.
  std::unique_ptr<communicator> make(const group_description& group, store& keys,
                                     const communicator_options& options);

 private:
  group_factory_options options_;
  std::unique_ptr<ucx_group_resources> ucx_;  // from the first such group on
};

}  // namespace troupe
