#pragma once
#include <string>
#include <vector>

#include "troupe/schedule/plan.hpp"

namespace troupe {

/// What is wrong with the Gs of a plan whose form is right (check_form). With several replicas each stage has
/// one G in each optimizer step: after its last weight gradient and the reductions of tied weights
/// (plan::reductions_before_all_reduce), before the other reductions and A; or after A, if it averages
/// weights. Otherwise there is none.
std::vector<std::string> check_all_reduces(const plan& checked);

}  // namespace troupe
