#pragma once
#include <string>
#include <vector>

#include "troupe/ops/tree_reduction.hpp"

namespace troupe::hierarchy {

/// On which hosts the members of a group are. A value; the same on all members. Hosts are numbered in the
/// order of their first members, the members of a host (its places) in the order of the group.
class placement {
 public:
  /// hosts: by member, alike for members of one host.
  explicit placement(const std::vector<std::string>& hosts);

  int num_members() const { return static_cast<int>(hosts_.size()); }
  int num_hosts() const { return static_cast<int>(members_.size()); }
  int host_of(int member) const { return hosts_[static_cast<std::size_t>(member)]; }
  int place_of(int member) const { return places_[static_cast<std::size_t>(member)]; }
  const std::vector<int>& members_on(int host) const { return members_[static_cast<std::size_t>(host)]; }
  /// The nodes of the reduction tree over all members that this host reduces by itself: one where the host
  /// has an aligned block of members, several where it has not.
  const std::vector<tree_node>& nodes_on(int host) const { return nodes_[static_cast<std::size_t>(host)]; }
  /// Who on `host` tells `member` what all of that host say.
  int server_of(int member, int host) const;
  /// Whether a host has several members, and there are several hosts.
  bool is_mixed() const { return num_hosts() > 1 && num_hosts() < num_members(); }

 private:
  std::vector<int> hosts_, places_;        // by member
  std::vector<std::vector<int>> members_;  // by host
  std::vector<std::vector<tree_node>> nodes_;
};

}  // namespace troupe::hierarchy
