#pragma once
#include <string_view>

#include "troupe/fault/fault_plan.hpp"
#include "troupe/schedule/plan.hpp"

namespace troupe::fault {

/// The point before each action of this kind.
fault_point fault_point_of(action_kind kind);

/// Refuses faults that never strike in a job of `world_size` processes that trains with this plan. Such a
/// fault is in a rank that the job does not have, or at an action that the plan does not have, such as W
/// under 1f1b. Throws bad_input, naming the ranks, or the points at the plan's actions. `text`: see
/// faults_from.
void check_faults(std::string_view text, const plan& training, int world_size);

}  // namespace troupe::fault
