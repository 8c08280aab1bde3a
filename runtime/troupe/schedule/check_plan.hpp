#pragma once
#include <string>
#include <vector>

#include "troupe/schedule/plan.hpp"

namespace troupe {

/// Everything wrong with `checked`, a sentence each; empty when the plan is sound: each action occurs once,
/// on its stage's device; data arrives before use and dependencies have no cycle; weight gradients of a stage
/// come in ascending microbatch order (ARCHITECTURE 4).
std::vector<std::string> check_plan(const plan& checked);

}  // namespace troupe
