#pragma once
#include "troupe/schedule/plan.hpp"

namespace troupe::schedule {

/// Gives each stage that has no U and no S those that `options` says; nothing with one replica. If parameters
/// are freed, a stage whose last U no S follows gets one after its last pass, so that no stage is whole at
/// the end of a step.
void insert_gathers(plan& made, const gather_options& options);

}  // namespace troupe::schedule
