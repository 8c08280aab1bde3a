#pragma once
#include "troupe/collective/direct/board.hpp"
#include "troupe/collective/group.hpp"

namespace troupe::direct {

/// Throws collective_error with what the member said that gave up first, if one has.
void throw_if_aborted(const board& at, const group_description& group);

}  // namespace troupe::direct
