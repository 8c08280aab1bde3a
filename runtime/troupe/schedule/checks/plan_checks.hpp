#pragma once

#include <string>
#include <vector>

#include "troupe/schedule/action_graph.hpp"
#include "troupe/schedule/plan.hpp"

namespace troupe::schedule {

// The parts of check_plan (check_plan.hpp).

/// What is wrong with a plan's numbers, devices, edges and members of reductions, a sentence each. Nothing
/// may be wrong with these before its actions are looked at.
std::vector<std::string> check_form(const plan& checked);

/// "0 to 3" of 4, "only 0" of 1: the numbers that stages, devices or microbatches have.
std::string number_range(int count);

/// One sentence for each cycle of actions that wait for each other for ever (a deadlock); empty if the plan
/// can run to its end. When a cycle is found, the inputs of its actions are taken for present and the search
/// goes on, so that each sentence is an independent fault.
std::vector<std::string> find_cycles(action_graph graph);

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

/// What is wrong with the Gs of a plan whose form is right (check_form).
///
/// | G | of each optimizer step of | comes |
/// |---|---|---|
/// | over tp, with several slices | the stages that have any | before R, G over dp and A |
/// | over dp, with several replicas | each stage | before A, between the Rs (reduction::before_sums) |
/// | over dp that averages weights | each stage | after A |
///
/// All but those that average come after the stage's last weight gradient.
std::vector<std::string> check_all_reduces(const plan& checked);

/// What is wrong with the Us and Ss of a plan whose form is right (check_form). They alternate, U first, and
/// each F, B and I of a stage that has any lies behind a U and before the next S. A stage that has none holds
/// its parameters whole.
std::vector<std::string> check_storage(const plan& checked);

}  // namespace troupe::schedule
