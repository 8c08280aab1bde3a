#pragma once
#include "troupe/ops/gradient_mode.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::cuda {

/// sum (+)= the rows of x: [..., C] of f32, bf16 or f16; sum: [C] of f32.
void row_sum(const tensor& x, tensor& sum, gradient_mode mode);

}  // namespace troupe::cuda
