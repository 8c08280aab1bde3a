#pragma once
#include <string>
#include <vector>

#include "troupe/schedule/plan.hpp"

namespace troupe {

/// Everything wrong with `checked`, a sentence each, which names the actions, edges or stages at fault; empty
/// when the plan is sound: its edges are a stage_graph; each action occurs once, on its stage's device; data
/// arrives before use and dependencies have no cycle; forwards of a stage come in ascending microbatch order,
/// and so do weight gradients, unless they descend in all stages (gradient_order.hpp); the last that a stage
/// does is its A, unless there are forwards only, and of several optimizer steps each uses the weights that
/// it must (check_applies); each stage of several replicas has its G (check_all_reduces). Of a plan whose
/// form is wrong (numbers, devices, edges, members of reductions), only that is said.
std::vector<std::string> check_plan(const plan& checked);

}  // namespace troupe
