#pragma once
#include <memory>
#include <vector>

#include "troupe/nn/loss.hpp"
#include "troupe/nn/module.hpp"

namespace troupe {

// What a stage is held to once, with the first microbatch it trains on.

/// Throws bad_input, naming it, if what was recorded for `output` adds gradients to a parameter that no layer
/// names: nobody would initialize, train or save it.
void check_parameters(const variable& output, const std::vector<std::shared_ptr<nn::Module>>& layers);

/// Throws bad_input unless `loss` of these outputs and targets counts and scales as nn::Loss has it. Calls it
/// twice.
void check_loss(const nn::Loss& loss, const tensor& output, const tensor& targets);

}  // namespace troupe
