#pragma once
#include "troupe/ops/kernels/conv2d.hpp"

namespace troupe::cuda {

enum class convolution_pass : std::uint8_t { forward, input_gradient, weight_gradient };

/// Queues one pass by cuDNN: of x, weight and y, or their gradients, one is written to, = or += as mode says.
/// For the weight gradient all three are converted to f32 where they are not. Returns false, with nothing
/// queued, where cuDNN offers no algorithm of a fixed order of sums for the problem, and where cuDNN is not
/// there: problem, alignment and the numeric class alone decide. Throws cuda_error, naming the problem, if
/// cuDNN fails. The build picks cudnn/ or cudnn_absent/.
bool library_convolution(convolution_pass pass, const conv2d_problem& of, const tensor& x,
                         const tensor& weight, const tensor& y, gradient_mode mode = gradient_mode::assign);

}  // namespace troupe::cuda
