#pragma once
#include "troupe/collective/algorithm.hpp"
#include "troupe/collective/network/conversation.hpp"

/// Collectives among members that exchange messages, one file each. n: members, S: bytes of the call. Sums
/// are those of troupe/ops/tree_reduction.hpp: whoever reduces an element has all n inputs of it.
namespace troupe::network {

algorithm all_reduce(conversation at);
algorithm reduce_scatter(conversation at);
algorithm all_gather(conversation at);
algorithm broadcast(conversation at);
algorithm reduce(conversation at);
algorithm gather(conversation at);
algorithm scatter(conversation at);
algorithm all_to_all(conversation at);
algorithm barrier(conversation at);
/// The last part of calls in which some would be done before they have heard of all: nobody leaves a call
/// that others do not make.
algorithm everyone_has_come(conversation& at);
algorithm send(conversation at);
algorithm receive(conversation at);

}  // namespace troupe::network
