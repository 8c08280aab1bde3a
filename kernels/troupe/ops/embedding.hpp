#pragma once
#include "troupe/ops/gradient_mode.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe {

// Embedding lookup. indices: i64 or i32 [...], weight: [V, C], y: [..., C]. An index outside [0, V) throws
// std::invalid_argument that names its position and value, before anything is written.

/// y[i] = weight[indices[i]]
tensor embedding_forward(const tensor& weight, const tensor& indices);

/// weight_gradient[indices[i]] (+)= dy[i], in ascending order of i, so that the bits do not depend on the
/// number of threads. dy: [..., C] of f32, bf16 or f16; weight_gradient: [V, C] f32.
void embedding_backward_weight(const tensor& indices, const tensor& dy, tensor weight_gradient,
                               gradient_mode mode = gradient_mode::accumulate);

}  // namespace troupe
