#pragma once
#include "troupe/ops/gradient_mode.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::cpu {

// A weight gradient is computed in f32 and then assigned or added to a tensor of another dtype, or only
// assigned, in place. Undefined gradients stay undefined.

/// Where to write what `store_gradient` then brings into `gradient`: f32, of its shape, not initialised.
tensor place_for_gradient(const tensor& gradient, gradient_mode mode);

void store_gradient(const tensor& computed, tensor& gradient, gradient_mode mode);

}  // namespace troupe::cpu
