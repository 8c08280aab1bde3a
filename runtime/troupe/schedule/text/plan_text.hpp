#pragma once
#include <string>

#include "troupe/schedule/plan.hpp"

namespace troupe::schedule {

/// Every action of every device in order, the stages' devices and the reductions, and the edges unless they
/// are a chain's, as text: plans are equal if and only if these are.
std::string plan_text(const plan& shown);

}  // namespace troupe::schedule
