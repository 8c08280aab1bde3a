#pragma once
#include "troupe/tensor/tensor.hpp"

namespace troupe::cpu {

/// x = max(x, 0), NaN stays; x of f32, bf16 or f16.
void relu_in_place(tensor& x);

}  // namespace troupe::cpu
