#pragma once
#include "troupe/tensor/tensor.hpp"

namespace troupe {

// Squared error. prediction and target are of one shape, device and dtype, f32, bf16 or f16; anything else
// throws std::invalid_argument. Divided by the number of elements, these are the mean's.

/// The sum of (prediction - target)^2 over all elements, in f64.
double mse_loss_forward(const tensor& prediction, const tensor& target);

/// The gradient of scale * that sum: 2 * scale * (prediction - target), of prediction's shape and dtype.
tensor mse_loss_backward(const tensor& prediction, const tensor& target, double scale);

}  // namespace troupe
