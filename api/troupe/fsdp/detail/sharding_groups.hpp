#pragma once
#include <memory>
#include <string>

#include "troupe/collective/communicator/communicator.hpp"

namespace troupe::detail {

/// Among whom a model is divided, and who has the same part of other divisions.
struct sharding_groups {
  std::shared_ptr<communicator> shards;
  std::shared_ptr<communicator> copies;  ///< null: there is one division

  int num_members() const { return shards->size() * (copies ? copies->size() : 1); }
  /// The number of this member's division.
  int division() const { return copies ? int{copies->rank()} : 0; }
  void abort(const std::string& cause) const {
    shards->abort(cause);
    if (copies) copies->abort(cause);
  }
};

}  // namespace troupe::detail
