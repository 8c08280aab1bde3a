#pragma once
#include <string>

#include "troupe/tensor/device.hpp"

namespace troupe {

/// Identifies the arithmetic of this process, for example "onednn-2.6.3-avx512_core_bf16" or "plain".
/// Processes with the same class give equal bits for equal operations; processes with different classes may
/// not. The first call fixes the instruction set: see cap_isa.
std::string numeric_class();

/// The class of a process that computes on `target`: for a GPU it also contains the GPU's model and the
/// versions of CUDA, cuBLASLt and cuDNN, as in "plain+cuda-13.0+cublaslt-13.1.0+cudnn-9.19.0+NVIDIA H100 80GB
/// HBM3", with tf32 before the model where set_matmul_precision has chosen it. Loads cuBLASLt, and cuDNN if
/// available; without it ("cudnn-none") convolutions use Troupe's own kernels. Throws bad_input if the device
/// or cuBLASLt does not exist.
std::string numeric_class(device target);

/// Limits the instruction set that operations may use to `name`: auto (leaves it as it is), sse41, avx2,
/// avx512_core or avx512_core_bf16. A machine with a smaller instruction set uses what it has. Throws
/// bad_input, naming the choices, for another name, and std::logic_error if more than `name` is in use
/// already, because an operation or numeric_class ran before. Plain kernels have one class under every limit.
void cap_isa(const std::string& name);

}  // namespace troupe
