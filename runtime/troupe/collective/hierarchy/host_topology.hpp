#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "troupe/collective/calls/operation.hpp"
#include "troupe/ops/tree_reduction.hpp"

namespace troupe::collective::hierarchy {

/// On which hosts the members of a group are. Hosts are numbered in the order of their first members; the
/// members of a host have local indices in the order of the group. A value; the same on all members.
class host_topology {
 public:
  /// hosts: by member, a name that is equal for members of one host.
  explicit host_topology(const std::vector<std::string>& hosts);

  int num_members() const { return static_cast<int>(hosts_.size()); }
  int num_hosts() const { return static_cast<int>(members_.size()); }
  int host_of(int member) const { return hosts_[static_cast<std::size_t>(member)]; }
  int local_index_of(int member) const { return local_indices_[static_cast<std::size_t>(member)]; }
  const std::vector<int>& members_on(int host) const { return members_[static_cast<std::size_t>(host)]; }
  /// The nodes of the reduction tree over all members that this host can reduce by itself: one where its
  /// members are an aligned block of the group, several otherwise.
  const std::vector<tree_node>& nodes_on(int host) const { return nodes_[static_cast<std::size_t>(host)]; }
  /// The member on `host` that sends `member` the message of `host` in a small call.
  int sender_for(int member, int host) const;
  /// Whether there are several hosts, and one of them has several members.
  bool is_mixed() const { return num_hosts() > 1 && num_hosts() < num_members(); }

 private:
  std::vector<int> hosts_, local_indices_;  // by member
  std::vector<std::vector<int>> members_;   // by host
  std::vector<std::vector<tree_node>> nodes_;
};

/// Elements that go as one message from each host to one member, their owner.
struct chunk {
  element_range elements;
  /// By host: the member there that sends the owner this host's data of the chunk, and receives the result.
  std::vector<int> partners;
};

/// Which member owns which elements of a call, cut into chunks. On each host the chunks of an owner elsewhere
/// are divided evenly among the members as partners. So a byte crosses between two hosts once, and all
/// members take part. A value; the same on all members.
class chunk_plan {
 public:
  struct options {
    std::size_t element_bytes = 4;
    std::size_t max_bytes = std::size_t{1} << 19;  ///< most bytes in a chunk
  };
  /// owned: by member, the elements that it owns; ascending on each host.
  chunk_plan(const host_topology& topology, const std::vector<element_range>& owned, const options& wanted);

  /// The chunks that `member` owns, ascending.
  const std::vector<chunk>& chunks_of(int member) const { return chunks_[static_cast<std::size_t>(member)]; }
  /// The largest number of chunks that one member owns.
  std::size_t max_chunks() const;

 private:
  void plan_host(const host_topology& topology, const std::vector<element_range>& owned, int host,
                 const options& wanted);

  std::vector<std::vector<chunk>> chunks_;  // by member
};

/// By member: `count` elements divided evenly among `hosts`, and on each host among its members. Members of
/// other hosts get none.
std::vector<element_range> ranges_by_host(const host_topology& topology, const std::vector<int>& hosts,
                                          std::int64_t count, std::size_t element_bytes);

}  // namespace troupe::collective::hierarchy
