#pragma once
#include <vector>

#include "troupe/collective/communicator.hpp"

namespace troupe {

/// Averages metrics over all virtual replicas of all members: the element-wise mean of f32 tensors of one
/// shape, one per replica of this member, in order. The sum uses the fixed tree, so the bits do not depend on
/// which member hosts which replica. The result is on the CPU. Every member must pass the same number of
/// tensors. Throws std::invalid_argument if there are none, if their shapes or dtypes differ, or if their
/// number is not a power of two and the group has several members.
tensor mean_over_replicas(const std::vector<tensor>& of_replicas, communicator& group);

/// Throws std::invalid_argument unless a member's `count` replicas form a complete subtree of the fixed tree:
/// a power of two, or any number if the group has one member.
void require_whole_block(int count, const communicator& group, const char* function);

}  // namespace troupe
