#pragma once
#include <vector>

#include "troupe/schedule/plan.hpp"

namespace troupe::schedule {

/// Which Gs a plan has.
struct update_options {
  bool averages_weights = false;                        ///< see schedule::averages_weights
  std::vector<int> stages_with_common_parameters = {};  ///< see plan_options
};

/// The actions with the Rs of the plan's reductions and the Gs of its stage around each A, as append_updates
/// places them. Their numbers are those of the A's step.
std::vector<action> with_reductions(const std::vector<action>& actions, const plan& training,
                                    const update_options& options);

/// Appends what comes after the last weight gradients of the last optimizer step; nothing if there are
/// forwards only. In order:
/// 1. with several slices a G over tp of each stage that has common parameters, from the last to the first
/// 2. the Rs that come before sums over replicas (reduction::before_sums)
/// 3. with several replicas that sum gradients, a G over dp of each stage, from the last stage to the first
/// 4. the Rs of the other reductions
/// 5. an A of each stage
/// 6. with several replicas that average weights, a G over dp of each stage
///
/// One reduction comes after the other, so that none waits for one that comes later on some device.
void append_updates(plan& made, const update_options& options);

}  // namespace troupe::schedule
