#pragma once
#include <optional>
#include <vector>

#include "troupe/nn/sequential.hpp"

namespace troupe {

/// Throws bad_input, naming one, unless `weights` are a model's parameters and buffers: each once, a tied one
/// under its owner's name, of its shape and f32.
void check_begin_weights(const nn::Sequential& model, const std::vector<named_tensor>& weights);

/// Copies of the parameters and buffers of a materialized model, in the CPU's memory; none of one that is
/// only described. Throws bad_input, naming two, for a model of which a part is materialized.
std::optional<std::vector<named_tensor>> weights_of_materialized(nn::Sequential& model);

}  // namespace troupe
