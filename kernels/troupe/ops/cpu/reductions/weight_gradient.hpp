#pragma once
#include "troupe/ops/gradient_mode.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::cpu {

// Weight gradients are computed in f32: in place if the tensor is f32 and is assigned, else in a buffer that
// store_gradient then assigns or adds. Undefined gradients stay undefined.

/// Returns the uninitialised f32 tensor in which to compute the gradient; pass it to store_gradient.
tensor place_for_gradient(const tensor& gradient, gradient_mode mode);

void store_gradient(const tensor& computed, tensor& gradient, gradient_mode mode);

}  // namespace troupe::cpu
