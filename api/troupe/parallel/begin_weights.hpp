#pragma once
#include <vector>

#include "troupe/nn/sequential.hpp"

namespace troupe {

/// Throws bad_input, naming one, unless `weights` are a model's parameters and buffers: each once, a tied one
/// under its owner's name, of its shape and f32.
void check_begin_weights(const nn::Sequential& model, const std::vector<named_tensor>& weights);

}  // namespace troupe
