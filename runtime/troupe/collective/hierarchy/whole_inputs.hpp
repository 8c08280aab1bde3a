#pragma once
#include "troupe/collective/algorithm.hpp"
#include "troupe/collective/hierarchy/site.hpp"

namespace troupe::hierarchy {

/// Whether a call of `count` elements goes in one message from each host.
bool is_small(const site& at, std::int64_t count);

/// A small reduction: elements `wanted` of all members' inputs to `result`, which may be their place in this
/// member's input. hearer: the only member who needs it, or -1.
algorithm reduce_whole_inputs(site& at, share wanted, std::byte* result, int hearer);

}  // namespace troupe::hierarchy
