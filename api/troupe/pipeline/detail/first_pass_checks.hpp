#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "troupe/nn/loss.hpp"
#include "troupe/nn/module.hpp"

namespace troupe::detail {

// Checks that a stage makes once, on the first microbatch that it trains on; require_recorded on each one.

/// Throws bad_input, naming the parameter, if the graph of `output` contains a parameter that no layer lists
/// in each_parameter: it would be neither initialized, trained nor saved.
void check_parameters(const variable& output, const std::vector<std::shared_ptr<nn::Module>>& layers);

/// Throws bad_input if the loss was not computed from the model's output by recorded operations.
void require_recorded(const loss_result& result);

/// Throws bad_input unless `loss` counts and applies gradient_scale as nn::Loss documents. Calls `loss` twice
/// on the given output and targets. Returns the loss_result::num_counted of these.
std::int64_t check_loss(const nn::Loss& loss, const tensor& output, const tensor& targets);

/// Throws bad_input if a loss that does not tell its count beforehand counts more or less in another
/// microbatch of the batch than in `targets`. `batch_targets`: of all microbatches of all replicas, whose
/// counts no replica would see otherwise; undefined: nothing is checked. Calls `loss` once for each.
void check_equal_counts(const nn::Loss& loss, const tensor& output, const tensor& targets,
                        const tensor& batch_targets);

/// What to do about a loss whose count depends on the targets.
inline constexpr auto advice_on_counts =
    "where the count depends on the targets, it must be known before the loss is computed. Give the job "
    "nn::Loss(function, num_counted), with a function that returns it for targets";

}  // namespace troupe::detail
