#pragma once
#include <span>

#include "troupe/collective/direct/meeting.hpp"
#include "troupe/collective/share.hpp"

namespace troupe::direct {

/// Reduces these elements of all members' inputs, which are in reach, into each of `outputs` (where the
/// share's first element goes). `whole_bytes`: of all that the call writes to one output; large ones go
/// around the caches.
void reduce_share(meeting& at, const share& which, std::span<std::byte* const> outputs,
                  std::size_t whole_bytes);

}  // namespace troupe::direct
