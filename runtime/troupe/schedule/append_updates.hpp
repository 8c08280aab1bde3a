#pragma once
#include "troupe/schedule/plan.hpp"

namespace troupe {

/// Appends what comes after the last weight gradients: the Rs of the plan's reductions, one reduction after
/// the other, so that none waits for one that comes later on some device; and unless there are forwards only,
/// an A of each stage.
void append_updates(plan& made);

}  // namespace troupe
