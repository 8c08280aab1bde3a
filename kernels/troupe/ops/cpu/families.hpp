#pragma once
#include "troupe/ops/kernels/all.hpp"

namespace troupe::cpu {

// Each family's table, defined in the file of that name.
activation_kernels activation();
linear_kernels linear();
matmul_kernels matmul();
attention_kernels attention();
row_kernels rows();
top_k_kernels top_k();

}  // namespace troupe::cpu
