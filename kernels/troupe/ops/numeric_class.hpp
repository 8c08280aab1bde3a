#pragma once
#include <string>

#include "troupe/tensor/device.hpp"

namespace troupe {

/// Identifies the arithmetic of this process: "cpu-1". Processes with the same class give equal bits for
/// equal operations; processes with different classes may not. All processors have one class; its number
/// rises when a version of Troupe computes an operation in another order than the one before.
std::string numeric_class();

/// The class of a process that computes on `target`. For a GPU it also contains the GPU's model and the
/// versions of CUDA, cuBLASLt and cuDNN, with tf32 before the model where set_matmul_precision has chosen it.
/// An example: "cpu-1+cuda-13.0+cublaslt-13.1.0+cudnn-9.19.0+NVIDIA H100 80GB HBM3". Loads cuBLASLt, and
/// cuDNN if available; without it ("cudnn-none") convolutions use Troupe's own kernels. Throws bad_input if
/// the device or cuBLASLt does not exist.
std::string numeric_class(device target);

}  // namespace troupe
