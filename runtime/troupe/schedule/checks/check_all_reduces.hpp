#pragma once
#include <string>
#include <vector>

#include "troupe/schedule/plan.hpp"

namespace troupe::schedule {

/// What is wrong with the Gs of a plan whose form is right (check_form). With several replicas each stage has
/// one G in each optimizer step, otherwise none. A G that sums gradients comes after the stage's last weight
/// gradient and the reductions of tied weights (plan::reductions_before_all_reduce), and before the other
/// reductions and A. One that averages weights comes after A.
std::vector<std::string> check_all_reduces(const plan& checked);

}  // namespace troupe::schedule
