#pragma once
#include <vector>

#include "troupe/collective/communicator/communicator.hpp"

namespace troupe::gradients {

/// Which virtual replicas each of the members computes: contiguous blocks, as even as possible, the larger
/// ones first (spread() of troupe/mesh/hosting.hpp); the last members have none if there are more
/// members than replicas. Throws std::invalid_argument unless 1 <= num_replicas < 32768.
collective::logical_rank_map spread_replicas(int num_replicas, int num_members);

/// The virtual replicas whose sums a member makes by itself: a logical-rank map, and the member in it.
struct summed_here {
  collective::logical_rank_map logical_ranks;
  member_index member = 0;
};
/// The same map if the group reduces in the fixed tree. Otherwise, where bits depend on the members
/// anyway, each member adds up all of its replicas, so that a plain all_reduce is left.
summed_here summed_by_member(const collective::logical_rank_map& replicas, const communicator& group);

/// Whether the sums of members are the leaves of an all_reduce: each has one replica, or the group does not
/// reduce in the fixed tree.
bool is_plain_all_reduce(const collective::logical_rank_map& replicas, const communicator& group);

/// Starts to sum the nodes of all members, as leaf_accumulator makes them of summed_by_member().
/// - `nodes`: f32 [m, n] for the m nodes of this member, undefined if it has none.
/// - `sum`: f32 or a 16-bit type, [n]; in f32 it may be the first node.
work all_reduce_nodes(const tensor& nodes, const tensor& sum, const collective::logical_rank_map& replicas,
                      communicator& group, const call_options& options = {});

/// Starts to sum tensors of one shape, one for each virtual replica of all members. The bits are those of one
/// member that has all replicas, if the group reduces in the fixed tree.
/// - `of_replicas`: f32 in CPU memory, those of this member in order. With a 16-bit sum the first is
///   overwritten.
/// - `sum`: as above; may be the first of them.
work all_reduce_replicas(const std::vector<tensor>& of_replicas, const tensor& sum,
                         const collective::logical_rank_map& replicas, communicator& group,
                         const call_options& options = {});
/// Its first part: the nodes of this member; a single one may be in the memory of `sum` or of_replicas[0].
tensor own_nodes(const std::vector<tensor>& of_replicas, const tensor& sum,
                 const collective::logical_rank_map& replicas, const communicator& group);

}  // namespace troupe::gradients
