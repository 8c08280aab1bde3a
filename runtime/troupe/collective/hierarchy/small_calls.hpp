#pragma once
#include <span>
#include <vector>

#include "troupe/collective/engine/algorithm.hpp"
#include "troupe/collective/hierarchy/hierarchy_call.hpp"

namespace troupe::hierarchy {

/// The messages of a small call: each host has one, which any of its members can send.
struct host_messages {
  std::span<const std::byte> own = {};                 ///< of this host; the same bytes on all its members
  std::vector<std::vector<std::byte>> from_host = {};  ///< received, by host; sized by the caller
  int source_host = -1;                                ///< the only host with a message; -1: all
  int receiver = -1;                                   ///< the only member that needs them; -1: all
};

/// Each receiver gets the message of each other source host, from the member there that serves it
/// (placement::sender_for). n members and H hosts: n (H-1) messages.
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

}  // namespace troupe::hierarchy
