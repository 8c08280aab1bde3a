#pragma once
#include "troupe/ops/gradient_mode.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::cpu {

/// sum (+)= the rows of x: [..., C] of f32, bf16 or f16; sum: [C] of f32. The rows of a block of fixed size
/// are added in ascending order, then the blocks in theirs: the number of threads changes no bit.
void row_sum(const tensor& x, tensor& sum, gradient_mode mode);

}  // namespace troupe::cpu
