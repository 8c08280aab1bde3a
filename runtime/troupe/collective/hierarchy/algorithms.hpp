#pragma once
#include "troupe/collective/engine/algorithm.hpp"
#include "troupe/collective/hierarchy/hierarchy_call.hpp"

/// Collectives of members on several hosts, of which some have several members. The members of one host use
/// shared memory (shm/); members of different hosts exchange messages (net/).
///
/// S: bytes of the call, H: number of hosts, limit: network_sizes::whole_inputs. A reduced element has the
/// bits of the fixed tree of troupe/ops/tree_reduction.hpp, wherever the members are: a host reduces the
/// nodes of the tree that cover its own members, and sends these nodes instead of its members' inputs.
///
/// Small calls (S up to the limit) take one message from each other host. First the members of a host give
/// each other their inputs in shared memory. Then each member receives from one member of each other host
/// what all members of that host have to say (small_calls.hpp).
///
/// Large calls cut the elements into chunks with one owner each (chunk_plan.hpp). The owner collects a chunk
/// from all hosts, reduces it and sends the result back. All chunks are in flight side by side
/// (pipeline.hpp), and a byte crosses from one host to another once.
namespace troupe::hierarchy {

algorithm all_reduce(hierarchy_call call);
algorithm reduce_scatter(hierarchy_call call);
algorithm all_gather(hierarchy_call call);
algorithm broadcast(hierarchy_call call);
algorithm reduce(hierarchy_call call);
algorithm barrier(hierarchy_call call);

}  // namespace troupe::hierarchy
