#pragma once
#include <memory>
#include <vector>

#include "troupe/collective/engine/algorithm.hpp"
#include "troupe/collective/hierarchy/hierarchy_call.hpp"
#include "troupe/collective/hierarchy/host_topology.hpp"

namespace troupe::collective::hierarchy {

/// A large call in progress. Its steps are algorithms that run side by side (run_all): while one chunk is
/// reduced or copied to local members, others are on the wire. The local members' tensors are accessible
/// meanwhile (shm_call::begin_access).
struct pipeline {
  hierarchy_call& call;
  chunk_plan plan;
  /// Local indices of the members whose outputs get results; this member receives into the first one's.
  std::vector<int> outputs = {};
  /// Hosts that get results.
  std::vector<int> results_to = {};

  /// Where these elements go in each of the outputs. Valid until the algorithm waits the next time.
  std::vector<std::byte*> output_addresses(const element_range& elements) const;
};

/// Sends the owners on other hosts this host's nodes of their chunks.
algorithm send_nodes(pipeline& flow);
/// Reduces the chunks that this member owns, into `result` if it is not null, else into the outputs, and
/// sends the results.
algorithm reduce_owned(pipeline& flow, std::byte* result);
/// Sends the result of an own chunk to the hosts that get results. number: of the chunk.
std::vector<std::shared_ptr<const net::transfer>> send_results(pipeline& flow, const chunk& owned,
                                                               std::uint32_t number,
                                                               std::span<const std::byte> result);
/// Receives the results of the owners on other hosts, and copies them to all outputs.
algorithm receive_results(pipeline& flow);
/// Sends the owners on other hosts their chunks of the input of the local member `source`, and meanwhile
/// copies that input to this member's output.
algorithm send_input_of(pipeline& flow, int source);
/// Receives what send_input_of on `host` sends of the own chunks, copies it to all outputs and sends it on to
/// the hosts that get results.
algorithm forward(pipeline& flow, int host);

/// Runs algorithms side by side. It ends when they have ended, all messages have been transferred, and all
/// local members have finished too, so that none accesses this member's tensors any more.
algorithm run_all(hierarchy_call& call, std::vector<algorithm> steps);

/// 0 to H - 1.
std::vector<int> all_hosts(const hierarchy_call& call);
/// Of all local members, this one first.
std::vector<int> all_local_indices(const hierarchy_call& call);
/// owned: by member. Chunks are of network_sizes::block.
chunk_plan make_plan(const hierarchy_call& call, const std::vector<element_range>& owned);
/// By member: its own part of the call, which it owns.
std::vector<element_range> owned_parts(const hierarchy_call& call);

}  // namespace troupe::collective::hierarchy
