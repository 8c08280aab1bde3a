#pragma once
#include <string>
#include <vector>

#include "troupe/schedule/plan.hpp"

namespace troupe::schedule {

/// What is wrong with a plan's numbers, devices, edges and members of reductions, a sentence each. Nothing
/// may be wrong with these before its actions are looked at.
std::vector<std::string> check_form(const plan& checked);

/// "0 to 3" of 4, "only 0" of 1: the numbers that stages, devices or microbatches have.
std::string number_range(int count);

}  // namespace troupe::schedule
