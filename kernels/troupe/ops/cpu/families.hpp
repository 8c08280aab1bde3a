#pragma once
#include "troupe/ops/kernels/all.hpp"

namespace troupe::cpu {

// Each family's table, defined in the file of that name.
activation_kernels activation();
adam_step_kernels adam_step();
dropout_kernels dropout();
lamb_step_kernels lamb_step();
reduction_kernels reduction();
sgd_step_kernels sgd_step();
conv2d_kernels conv2d();
pooling_kernels pooling();
norm_kernels norm();
linear_kernels linear();

}  // namespace troupe::cpu
