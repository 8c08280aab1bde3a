#pragma once
#include "troupe/ops/kernels/reduction.hpp"

namespace troupe::cuda {

/// The entry of reduction_kernels.
void argmax(const tensor& x, const reduced_axis& along, tensor& index);

}  // namespace troupe::cuda
