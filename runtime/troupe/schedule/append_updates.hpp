#pragma once
#include <vector>

#include "troupe/schedule/plan.hpp"

namespace troupe::schedule {

/// The actions with the Rs of the plan's reductions and, with several replicas, the G of its stage around
/// each A, as append_updates places them. Their numbers are those of the A's step.
std::vector<action> with_reductions(const std::vector<action>& actions, const plan& training);

/// Appends what comes after the last weight gradients of the last optimizer step; nothing if there are
/// forwards only. In order:
/// 1. the Rs of the first plan::reductions_before_all_reduce reductions
/// 2. with several replicas that sum gradients, a G of each stage, from the last stage to the first
/// 3. the Rs of the other reductions
/// 4. an A of each stage
/// 5. with several replicas that average weights, a G of each stage
///
/// One reduction comes after the other, so that none waits for one that comes later on some device.
void append_updates(plan& made);

}  // namespace troupe::schedule
