#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "troupe/nn/loss.hpp"
#include "troupe/nn/module.hpp"

namespace troupe {

// Checks that a stage makes once, on the first microbatch that it trains on.

/// Throws bad_input, naming the parameter, if the graph of `output` contains a parameter that no layer lists
/// in each_parameter: it would be neither initialized, trained nor saved.
void check_parameters(const variable& output, const std::vector<std::shared_ptr<nn::Module>>& layers);

/// Throws bad_input unless `loss` counts and applies gradient_scale as nn::Loss documents. Calls `loss` twice
/// on the given output and targets. Returns the loss_result::num_counted of these.
std::int64_t check_loss(const nn::Loss& loss, const tensor& output, const tensor& targets);

}  // namespace troupe
