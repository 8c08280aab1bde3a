#pragma once
#include <span>
#include <vector>

#include "troupe/collective/engine/algorithm.hpp"
#include "troupe/collective/hierarchy/host_topology.hpp"
#include "troupe/collective/net/net_call.hpp"
#include "troupe/collective/shm/shm_call.hpp"

namespace troupe::collective::hierarchy {

/// One member's side of one call of a group on several hosts. It consists of a call in shared memory with the
/// members of its own host (its local members), and a call over the network with the members of all hosts.
struct hierarchy_call {
  shm::shm_call local;
  net::net_call remote;
  const host_topology& topology;

  const collective_operation& operation() const { return remote.operation(); }
  int member() const { return remote.member(); }
  int host() const { return topology.host_of(member()); }
  int local_index() const { return topology.local_index_of(member()); }
  int num_local() const { return local.num_members(); }  ///< local members, with this one
  std::size_t bytes_of(std::int64_t count) const {
    return static_cast<std::size_t>(count) * remote.element_bytes();
  }
};

/// Whether `count` elements fit inline into a slot of the control block.
bool fits_inline(const hierarchy_call& call, std::int64_t count);

/// The size of a host's message about `count` elements in a reduction: its nodes one after the other.
std::size_t bytes_of_nodes(const hierarchy_call& call, int host, std::int64_t count);
/// Reduces the nodes of this host. inputs: of the local members, by local index.
void reduce_own_nodes(const hierarchy_call& call, std::span<const std::byte* const> inputs,
                      std::int64_t count, std::byte* nodes);
/// Reduces the inputs of the local members, by local index, together with the nodes of the other hosts, by
/// host, into each of `outputs`.
void reduce_with_nodes(const hierarchy_call& call, std::span<const std::byte* const> inputs,
                       std::span<const std::byte* const> nodes, std::int64_t count,
                       std::span<std::byte* const> outputs);

/// The messages of a small call: each host has one, which any of its members can send.
struct host_messages {
  std::span<const std::byte> own = {};                 ///< of this host; the same bytes on all its members
  std::vector<std::vector<std::byte>> from_host = {};  ///< received, by host; sized by the caller
  int source_host = -1;                                ///< the only host with a message; -1: all
  int receiver = -1;                                   ///< the only member that needs them; -1: all
};

/// Each receiver gets the message of each other source host, from the member there that serves it
/// (host_topology::sender_for). n members and H hosts: n (H-1) messages.
algorithm exchange_host_messages(hierarchy_call& call, host_messages& messages);

/// Ends when members of all hosts have arrived, and with them their local members: a dissemination (see
/// net/algorithms.hpp) among hosts, in ceil(log2 H) rounds, to be started when the local members have
/// arrived. Other messages of the call may be in flight meanwhile.
algorithm host_dissemination(hierarchy_call& call);

/// Whether a call of `count` elements is small: one message from each host.
bool is_small(const hierarchy_call& call, std::int64_t count);

/// A small reduction of all members' inputs. `wanted` of it goes to `result`, which may be the place of these
/// elements in this member's input. receiver: the only member that needs it, or -1.
algorithm reduce_whole_inputs(hierarchy_call& call, element_range wanted, std::byte* result, int receiver);

}  // namespace troupe::collective::hierarchy
