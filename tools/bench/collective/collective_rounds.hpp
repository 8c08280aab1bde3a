#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "bench/collective/collective_sample.hpp"
#include "bench/collective/gloo_peer.hpp"
#include "bench/measure/timed_calls.hpp"
#include "troupe/collective/communicator.hpp"

namespace troupe::bench {

/// What is measured of one operation with tensors of one size.
struct collective_round {
  std::string operation;        ///< all_reduce, all_gather, reduce_scatter or p2p
  std::int64_t size_bytes = 8;  ///< of the whole tensor; a multiple of 4
  int repeats = 5;              ///< how often all that is compared is measured in turn
  bool fresh = false;           ///< owners rewrite their tensors before each call
};

/// How the members of a group meet between calls.
meeting_members meeting_of(communicator& group);

/// Every member of `group` calls this alike, one sample for each repeat. p2p goes to and fro between members
/// 0 and 1, and is half of a round trip.
std::vector<collective_sample> measure_group(communicator& group, core_probe& probe,
                                             const collective_round& what);
/// The same of gloo's call; the group is for the members to meet.
std::vector<collective_sample> measure_gloo(communicator& group, gloo_peer& gloo, core_probe& probe,
                                            const collective_round& what);

}  // namespace troupe::bench
