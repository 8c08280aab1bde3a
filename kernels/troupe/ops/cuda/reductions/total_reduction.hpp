#pragma once
#include <span>

#include "troupe/tensor/tensor.hpp"

namespace troupe::cuda {

// Over whole tensors, in f64. They wait for the GPU.

double total_sum(const tensor& x);
double sum_of_squares(std::span<const tensor> tensors);
/// Of one shape and dtype.
double sum_of_squared_differences(const tensor& a, const tensor& b);
bool all_finite(std::span<const tensor> tensors);
bool scale_all(std::span<const tensor> tensors, float factor);

}  // namespace troupe::cuda
