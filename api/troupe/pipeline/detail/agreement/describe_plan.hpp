#pragma once
#include "troupe/agreement/job_description.hpp"
#include "troupe/schedule/plan.hpp"

namespace troupe::detail {

/// Adds a hash over the whole plan, and its parts, so that members whose plans differ are told where: edges,
/// the stages' devices, reductions, and each device's actions. Long lists are cut and show a hash.
void describe_plan(const plan& described, agreement::job_description& into);

}  // namespace troupe::detail
