#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "troupe/ops/gradient_mode.hpp"
#include "troupe/ops/kernels/reduction.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::cpu {

// Reductions that several families of operations are made of.

// The entries of reduction_kernels for whole tensors.
double total_sum(const tensor& x);
double sum_of_squares(std::span<const tensor> tensors);
std::vector<double> block_squares(std::span<const tensor> tensors);
/// Of one shape and dtype.
double sum_of_squared_differences(const tensor& a, const tensor& b);
bool all_finite(std::span<const tensor> tensors);
bool scale_all(std::span<const tensor> tensors, float factor);

/// The first index along the axis at which x equals `largest`, its f32 maximum [outer, inner], or is NaN.
void argmax(const tensor& x, const reduced_axis& along, const tensor& largest, tensor& index);

inline std::int64_t quotient_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// sum (+)= the rows of x: [..., C] of f32, bf16 or f16; sum: [C] of f32. Rows are added in ascending order
/// within blocks of fixed size, then the blocks in order, so the bits do not depend on the number of threads.
void row_sum(const tensor& x, tensor& sum, gradient_mode mode);

}  // namespace troupe::cpu
