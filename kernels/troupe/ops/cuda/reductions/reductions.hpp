#pragma once

#include <span>
#include <vector>

#include "troupe/ops/gradient_mode.hpp"
#include "troupe/ops/kernels/reduction.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::cuda {

// Over whole tensors, in f64. They wait for the GPU.

double total_sum(const tensor& x);
double sum_of_squares(std::span<const tensor> tensors);
std::vector<double> block_squares(std::span<const tensor> tensors);
/// Of one shape and dtype.
double sum_of_squared_differences(const tensor& a, const tensor& b);
bool all_finite(std::span<const tensor> tensors);
bool scale_all(std::span<const tensor> tensors, float factor);

/// The entry of reduction_kernels.
void argmax(const tensor& x, const reduced_axis& along, tensor& index);

/// sum (+)= the rows of x: [..., C] of f32, bf16 or f16; sum: [C] of f32.
void row_sum(const tensor& x, tensor& sum, gradient_mode mode);

}  // namespace troupe::cuda
