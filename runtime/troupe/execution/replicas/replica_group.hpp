#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "troupe/collective/communicator/communicator.hpp"

namespace troupe::execution {

/// The group over which the replicas of a stage add up its gradients where a library carries them
/// (group_exchange). A member is a process that hosts one replica or several; its lowest one leads, and makes
/// the calls for all.
struct replica_group {
  /// In which order all members make the calls of an exchange: that in which member 0 was given the buckets
  /// of the first one, which it sends to the others.
  struct call_order {
    tensor buckets;  ///< i32 [buckets], where the group is; once `sent` has ended
    work sent;
  };

  std::vector<member_index> member_of_replica;  ///< [replica]
  std::shared_ptr<communicator> calls;          ///< where this process is a member
  /// By number of buckets; none: none is known yet.
  std::shared_ptr<std::map<std::size_t, call_order>> orders =
      std::make_shared<std::map<std::size_t, call_order>>();

  /// In ascending order: the first one leads.
  std::vector<int> replicas_of(member_index member) const {
    std::vector<int> found;
    for (std::size_t replica = 0; replica < member_of_replica.size(); ++replica)
      if (member_of_replica[replica] == member) found.push_back(static_cast<int>(replica));
    return found;
  }
  /// Those in the process of this one, itself included.
  std::vector<int> replicas_with(int replica) const {
    return replicas_of(member_of_replica[static_cast<std::size_t>(replica)]);
  }
};

}  // namespace troupe::execution
