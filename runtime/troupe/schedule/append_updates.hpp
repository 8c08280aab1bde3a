#pragma once
#include <vector>

#include "troupe/schedule/plan.hpp"

namespace troupe {

/// The actions with the Rs of the plan's reductions before each A, whose numbers are those of its steps.
std::vector<action> with_reductions(const std::vector<action>& actions, const plan& of);

/// Appends what comes after the last weight gradients. First come the Rs of the reductions of the last
/// optimizer step, one reduction after the other, so that none waits for one that comes later on some device.
/// Then, unless there are forwards only, comes an A of each stage.
void append_updates(plan& made);

}  // namespace troupe
