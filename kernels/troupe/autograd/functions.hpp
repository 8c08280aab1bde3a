#pragma once
#include <cstdint>

#include "troupe/autograd/variable.hpp"

namespace troupe {

// Operations on variables, recorded where a gradient is wanted. Shapes and errors are those of troupe/ops.

/// x weight^T + bias; `bias` may be null.
variable linear(const variable& x, parameter& weight, parameter* bias);

variable relu(const variable& x);

/// The same elements under another shape.
variable reshape(const variable& x, shape extents);

/// [B, ...] to [B, product of the rest]: the same elements.
variable flatten(const variable& x);

/// a + b, of equal shapes.
variable add(const variable& a, const variable& b);

/// x * scale as f32, for u8 x. Throws std::invalid_argument if a gradient of x is wanted: there is none.
variable to_float(const variable& x, float scale);

struct loss_result {
  variable loss;  ///< scalar f32: gradient_scale * loss_sum
  double loss_sum = 0;
  std::int64_t num_correct = 0;
};

/// Softmax cross entropy of logits [B, C] and labels [B]; its backward gives gradient_scale times the
/// gradient of the samples' summed loss.
loss_result cross_entropy(const variable& logits, const tensor& labels, double gradient_scale);

}  // namespace troupe
