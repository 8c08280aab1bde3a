#pragma once
#include "troupe/collective/algorithm.hpp"
#include "troupe/collective/hierarchy/site.hpp"

/// Collectives of members on several hosts of which some have several members, one file each. Neighbours meet
/// in memory (direct/); between two hosts a byte goes once. Sums are those of troupe/ops/tree_reduction.hpp,
/// wherever the members are: a host sends the nodes of the tree that it can reduce by itself.
///
/// Small calls (network_sizes::whole_inputs) are done after one message from each other host: neighbours tell
/// each other all that is needed, and each member hears from one of each other host what all of that host
/// say. Large ones take members' elements in a division: the takers bring them together and pass on results.
namespace troupe::hierarchy {

algorithm all_reduce(site at);
algorithm reduce_scatter(site at);
algorithm all_gather(site at);
algorithm broadcast(site at);
algorithm reduce(site at);
algorithm barrier(site at);

}  // namespace troupe::hierarchy
