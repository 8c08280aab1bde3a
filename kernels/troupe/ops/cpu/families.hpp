#pragma once
#include "troupe/ops/kernels/all.hpp"

namespace troupe::cpu {

// Each family's table, defined in the file of that name.
activation_kernels activation();
linear_kernels linear();
matmul_kernels matmul();
attention_kernels attention();

}  // namespace troupe::cpu
