#pragma once
#include <string>
#include <vector>

#include "troupe/schedule/plan.hpp"

namespace troupe::schedule {

/// Everything wrong with `checked`, a sentence each, which names the actions, edges or stages at fault; empty
/// when the plan is sound:
/// - Its edges are a stage_graph.
/// - Each action occurs once, on its stage's device.
/// - Data arrives before use, and dependencies have no cycle.
/// - Forwards of a stage come in ascending microbatch order, and so do weight gradients, unless they descend
///   in all stages (gradient_order.hpp).
/// - The last that a stage does is its A, unless there are forwards only or a G averages its weights.
/// - Of several optimizer steps each uses the weights that it must (check_applies).
/// - Each stage of several replicas has its G (check_all_reduces).
///
/// Of a plan whose form is wrong (numbers, devices, edges, members of reductions), only that is said.
std::vector<std::string> check_plan(const plan& checked);

}  // namespace troupe::schedule
