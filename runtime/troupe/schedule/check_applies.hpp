#pragma once
#include <string>
#include <vector>

#include "troupe/schedule/plan.hpp"

namespace troupe {

/// What is wrong with the optimizer's steps of a plan whose form is right (check_form), a sentence each: each
/// stage of a training plan has plan::flush_every As, in order, the last of which is the last that it does.
///
/// Of several steps a stage keeps two versions of its weights at most, and each microbatch gets the right one
/// (PipeDream-2BW): F of step t comes after A t - 2, which makes its weights, and W (or B) of step t between
/// A t - 1, which ends the gradients before, and A t, which overwrites the weights that it used. On the stage
/// that computes the loss F comes after A t - 1 too, which says how the loss is scaled.
std::vector<std::string> check_applies(const plan& checked);

}  // namespace troupe
