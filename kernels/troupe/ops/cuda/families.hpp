#pragma once
#include "troupe/ops/kernels/all.hpp"

namespace troupe::cuda {

// Each family's table, defined in the file of that name.
activation_kernels activation();
linear_kernels linear();

}  // namespace troupe::cuda
