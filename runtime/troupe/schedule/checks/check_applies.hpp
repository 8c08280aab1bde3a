#pragma once
#include <string>
#include <vector>

#include "troupe/schedule/plan.hpp"

namespace troupe::schedule {

/// What is wrong with the optimizer's steps of a plan whose form is right (check_form), a sentence each. Each
/// stage of a training plan has plan::flush_every As, in order. The last one is the last that the stage does,
/// but for a G that averages its weights.
///
/// Of several steps a stage keeps two versions of its weights at most, and each microbatch gets the right one
/// (PipeDream-2BW):
///
/// | action of step t | comes |
/// |---|---|
/// | F | after A t - 2, which makes its weights |
/// | F of the stage that computes the loss | also after A t - 1, which says how the loss is scaled |
/// | W (or B) | after A t - 1, which ends the gradients before |
/// | W (or B) | before A t, which overwrites the weights that it used |
std::vector<std::string> check_applies(const plan& checked);

}  // namespace troupe::schedule
