#pragma once
#include "troupe/collective/engine/algorithm.hpp"
#include "troupe/collective/hierarchy/hierarchy_call.hpp"

/// Collectives of members on several hosts, of which some have several members. The members of one host use
/// shared memory (shm/); members of different hosts exchange messages (net/).
///
/// S: bytes of the call, H: number of hosts, limit: network_sizes::whole_inputs. A reduced element has the
/// bits of the fixed tree of troupe/ops/tree_reduction.hpp, wherever the members are. A host reduces the
/// nodes of the tree that cover its own members, and sends these nodes instead of its members' inputs.
///
/// Small calls (S up to the limit) take one message from each other host. First the members of a host give
/// each other their inputs in shared memory. Then each member receives from one member of each other host
/// what all members of that host have to say (hierarchy_call.hpp).
///
/// Large calls cut the elements into chunks with one owner each (host_topology.hpp). The owner collects a
/// chunk from all hosts, reduces it and sends the result back. All chunks are in flight side by side
/// (pipeline.hpp), and a byte crosses from one host to another once.
///
/// Between hosts, for n members. Nodes: bytes of the tree nodes that a host sends instead of its inputs, S if
/// its members are one node of the tree and are reduced in their own type. In shared memory a call costs what
/// shm/algorithms.hpp says of the same call among the members of one host.
///
/// | call | small: messages of all, bytes of each | large: bytes that a host sends |
/// |---|---|---|
/// | all_reduce | n (H-1), nodes | nodes (H-1)/H, and S (H-1)/H of results |
/// | reduce_scatter | n (H-1), nodes | nodes of the elements that other hosts own |
/// | reduce | H - 1, nodes | H = 2: nodes (the root's: 0); else nodes (H-1)/H, and S/H (the root's: 0) |
/// | all_gather | n (H-1), the parts of a host | the parts of its members, to each other host |
/// | broadcast | one to each member of another host, S | the root's: S; others: S (H-2)/(H-1) |
/// | barrier | n ceil(log2 H), none | |
///
/// A large call sends one message for each chunk (network_sizes::block) in place of each S above. Not
/// counted: the host_dissemination that ends large calls, and small ones with a root: n ceil(log2 H) empty
/// messages.
///
/// The calls gather, scatter, all_to_all and messages between hosts are those of net/, since each byte of
/// them has one receiver. So is an all_reduce of nodes, which do not follow the members. Messages on one host
/// are those of shm/.
namespace troupe::collective::hierarchy {

algorithm all_reduce(hierarchy_call call);
algorithm reduce_scatter(hierarchy_call call);
algorithm all_gather(hierarchy_call call);
algorithm broadcast(hierarchy_call call);
algorithm reduce(hierarchy_call call);
algorithm barrier(hierarchy_call call);

}  // namespace troupe::collective::hierarchy
