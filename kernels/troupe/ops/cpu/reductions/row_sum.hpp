#pragma once
#include "troupe/ops/gradient_mode.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::cpu {

/// sum (+)= the rows of x: [..., C] of f32, bf16 or f16; sum: [C] of f32. Rows are added in ascending order
/// within blocks of fixed size, then the blocks in order, so the bits do not depend on the number of threads.
void row_sum(const tensor& x, tensor& sum, gradient_mode mode);

}  // namespace troupe::cpu
