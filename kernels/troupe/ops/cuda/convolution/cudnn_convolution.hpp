#pragma once
#include "troupe/ops/kernels/conv2d.hpp"

namespace troupe::cuda {

enum class convolution_pass : std::uint8_t { forward, input_gradient, weight_gradient };

/// Queues one convolution pass by cuDNN; of x, weight and y (or their gradients), one is the result, written
/// as `mode` says. The weight gradient is computed in f32. Returns false, with nothing queued, if cuDNN has
/// no deterministic algorithm for the problem or is not installed; this depends only on problem, alignment
/// and numeric class. Throws cuda_error, naming the problem, if cuDNN fails. Implemented in cudnn/ or
/// cudnn_absent/, as configured.
bool cudnn_convolution(convolution_pass pass, const conv2d_problem& problem, const tensor& x,
                       const tensor& weight, const tensor& y, gradient_mode mode = gradient_mode::assign);

}  // namespace troupe::cuda
