#pragma once
#include <optional>
#include <vector>

#include "troupe/nn/module.hpp"

namespace troupe::detail {

/// Throws bad_input unless `weights` holds each parameter and buffer of the model exactly once, in f32 and
/// with its shape; a tied weight has the name of its owner. The message names the first mismatch.
void check_initial_weights(const nn::Module& model, const std::vector<named_tensor>& weights);

/// Copies the parameters and buffers of a materialized model to CPU memory; returns nothing for a model that
/// is not materialized. Throws bad_input, with an example of each, for a partly materialized model.
std::optional<std::vector<named_tensor>> weights_if_materialized(nn::Module& model);

}  // namespace troupe::detail
