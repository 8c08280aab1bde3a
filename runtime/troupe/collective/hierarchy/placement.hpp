#pragma once
#include <string>
#include <vector>

#include "troupe/ops/tree_reduction.hpp"

namespace troupe::hierarchy {

/// On which hosts the members of a group are. Hosts are numbered in the order of their first members; the
/// members of a host have local indices in the order of the group. A value; the same on all members.
class placement {
 public:
  /// hosts: by member, a name that is equal for members of one host.
  explicit placement(const std::vector<std::string>& hosts);

  int num_members() const { return static_cast<int>(hosts_.size()); }
  int num_hosts() const { return static_cast<int>(members_.size()); }
  int host_of(int member) const { return hosts_[static_cast<std::size_t>(member)]; }
  int local_index_of(int member) const { return local_indices_[static_cast<std::size_t>(member)]; }
  const std::vector<int>& members_on(int host) const { return members_[static_cast<std::size_t>(host)]; }
  /// The nodes of the reduction tree over all members that this host can reduce by itself: one where its
  /// members are an aligned block of the group, several otherwise.
  const std::vector<tree_node>& nodes_on(int host) const { return nodes_[static_cast<std::size_t>(host)]; }
  /// The member on `host` that sends `member` what `host` has to say in a small call.
  int sender_for(int member, int host) const;
  /// Whether there are several hosts, and one of them has several members.
  bool is_mixed() const { return num_hosts() > 1 && num_hosts() < num_members(); }

 private:
  std::vector<int> hosts_, local_indices_;  // by member
  std::vector<std::vector<int>> members_;   // by host
  std::vector<std::vector<tree_node>> nodes_;
};

}  // namespace troupe::hierarchy
