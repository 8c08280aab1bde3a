#pragma once
#include <vector>

#include "troupe/collective/communicator.hpp"

namespace troupe {

/// Metrics averaged over all virtual replicas of all members: the element-wise mean of f32 tensors of one
/// shape, one for each replica that this member hosts, in order. Summed in the fixed tree, so its bits do not
/// depend on who hosts which; the result is on the CPU. Every member calls it with as many. Throws
/// std::invalid_argument if there are none, or their shapes or dtypes differ, or if their number is no power
/// of two and there are other members.
tensor mean_over_replicas(const std::vector<tensor>& of_replicas, communicator& group);

/// Throws std::invalid_argument unless a member's `count` replicas make a whole block of the fixed tree: a
/// power of two, or any number where there is one member.
void require_whole_block(int count, const communicator& group, const char* where);

}  // namespace troupe
