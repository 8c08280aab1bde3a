#pragma once
#include <memory>
#include <string>

#include "troupe/collective/communicator.hpp"
#include "troupe/collective/store.hpp"

namespace troupe {

/// Makes groups with the backend that the job asked for, and keeps what its groups share.
class group_factory {
 public:
  /// `backend`: "ucx", "local", "gloo", "mpi" or "nccl".
  explicit group_factory(std::string backend) : backend_(std::move(backend)) {}

  /// This member's end of a group; the others make theirs with the same name and ranks and find each other in
  /// `keys`, which outlives it. A group of one needs no backend. Throws bad_input for one that is not in this
  /// build or cannot carry groups of several processes.
  std::unique_ptr<communicator> make(const group_description& group, store& keys,
                                     const communicator_options& options);

 private:
  std::string backend_;
};

}  // namespace troupe
