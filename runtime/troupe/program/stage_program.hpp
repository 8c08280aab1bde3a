#pragma once
#include <functional>
#include <memory>

#include "troupe/layout/part_id.hpp"
#include "troupe/program/stage_compute.hpp"
#include "troupe/program/stage_parameters.hpp"
#include "troupe/program/stage_state.hpp"

namespace troupe::program {

/// What one stage computes and holds. The runtime calls it; api/ implements it with modules, a user with
/// anything.
///
/// Used by one thread at a time. An exception from any call fails the step, not the process. The calls of an
/// optimizer step, in order:
///
/// 1. For each microbatch forward, then (training only) backward_input before backward_weight. Forwards of
///    later microbatches may come between, also of the next step if their weights are older
///    (microbatch::delay).
/// 2. If the plan has a G over tp of the stage, bucket and take_sums of each bucket over tp.
/// 3. The plan's reductions that the stage takes part in, in order: partial_for_reduction, then reduce.
/// 4. With several replicas, bucket and take_sums of each bucket over dp. They come after those reductions
///    that a plan has before G, and before the others.
/// 5. apply.
/// 6. Where replicas average their weights (schedule::averages_weights), the calls of 4 with buckets of the
///    weights, instead of 4.
///
/// Weight gradients of a step accumulate in ascending microbatch order, or in all steps in descending order
/// (microbatch::gradients_descend). Between two flushes several such steps may follow each other. State,
/// parameters and weights are asked for at a flush, and discard is followed by load_state.
class stage_program : public stage_compute, public stage_parameters, public stage_state {};

/// Makes the program of a stage of a lane, with its initial weights. Those of a stage's replicas are equal.
using program_factory = std::function<std::unique_ptr<stage_program>(const layout::cell& computed)>;

}  // namespace troupe::program
