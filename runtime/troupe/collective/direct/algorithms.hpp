#pragma once
#include "troupe/collective/direct/meeting.hpp"

/// Collectives among members that reach each other's memory, one file each. Small calls leave what is needed
/// with the notes: one phase. In large ones each member does its share directly on the others' tensors, so
/// that n members together move no more bytes than n concurrent copies; then all wait for all, since tensors
/// are in reach until then.
namespace troupe::direct {

algorithm all_reduce(meeting at);
algorithm reduce_scatter(meeting at);
algorithm all_gather(meeting at);
algorithm broadcast(meeting at);
algorithm reduce(meeting at);
algorithm gather(meeting at);
algorithm scatter(meeting at);
algorithm all_to_all(meeting at);
algorithm barrier(meeting at);
/// Between two: `sequence` counts the sends of this pair in this direction.
algorithm send(board& at, member_memory& memory, presence here, const collective_operation& what,
               std::uint64_t sequence);
algorithm receive(board& at, member_memory& memory, presence here, const group_description& group,
                  const collective_operation& what, std::uint64_t sequence);

}  // namespace troupe::direct
