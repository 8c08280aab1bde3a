#pragma once
#include "troupe/collective/engine/algorithm.hpp"
#include "troupe/collective/net/net_call.hpp"

/// Collectives among members that exchange messages. n: members, S: bytes of the call, F: of a node in f32.
/// Reductions follow the fixed tree of troupe/ops/tree_reduction.hpp: the member that reduces an element has
/// all n inputs of it. So there is neither a ring nor recursive doubling, which would add in another order.
///
/// | call | rounds | messages of a member | bytes that a member sends |
/// |---|---|---|---|
/// | all_reduce, (n-1) S up to whole_inputs | 1 | n - 1 | (n-1) S |
/// | all_reduce beyond | 2 | 2 (n-1) for each block | 2 S (n-1)/n |
/// | all_reduce of nodes, at most m of a member, (n-1) m F up to whole_inputs | 1 | (n-1) m | (n-1) m F |
/// | all_reduce of nodes beyond | 2 | (m + 1) (n-1) for each block | (m F + S) (n-1)/n |
/// | reduce_scatter | 1 | n - 1 for each block | S (n-1)/n |
/// | reduce, S up to whole_inputs | 1 | 1 (the root: 0) | S |
/// | reduce beyond | 2 | n for each block | S |
/// | broadcast, S up to whole_broadcast | ceil(log2 n) | up to ceil(log2 n) | up to S ceil(log2 n) |
/// | broadcast beyond | 2 | n - 2 for each block | S at most |
/// | all_gather, all_to_all | 1 | n - 1 | each part to each member that needs it |
/// | gather, scatter | 1 | 1 (the root of scatter: n - 1) | each part once |
/// | barrier | ceil(log2 n) | ceil(log2 n) | none |
///
/// A block is a block of one member's range (network_sizes::block). Not counted: announcements without
/// elements, and the dissemination that ends a call in which a member could be done before all others have
/// entered it.
namespace troupe::collective::net {

algorithm all_reduce(net_call call);
algorithm reduce_scatter(net_call call);
algorithm all_gather(net_call call);
algorithm broadcast(net_call call);
algorithm reduce(net_call call);
algorithm gather(net_call call);
algorithm scatter(net_call call);
algorithm all_to_all(net_call call);
algorithm barrier(net_call call);
/// Ends when all members have entered the call: no member leaves a call that others do not make.
algorithm dissemination(net_call& call);
algorithm send(net_call call);
algorithm receive(net_call call);

}  // namespace troupe::collective::net
