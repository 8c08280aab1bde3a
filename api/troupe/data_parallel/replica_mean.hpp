#pragma once
#include <vector>

#include "troupe/collective/communicator/communicator.hpp"

namespace troupe {

/// Averages metrics over all virtual replicas of all members: the element-wise mean of f32 tensors of one
/// shape of at most 8 axes. `of_replicas` has one per replica of this member, in order; none on a member
/// without replicas. The replicas of the first member come before those of the next. The sum uses the fixed
/// tree, so the bits do not depend on which member hosts which replica. The result is on the CPU. Throws
/// std::invalid_argument if a tensor has another shape or dtype than the first, if members' shapes differ, or
/// if no member has any.
tensor mean_over_replicas(const std::vector<tensor>& of_replicas, communicator& group);

}  // namespace troupe
