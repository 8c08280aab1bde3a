#pragma once
#include "troupe/ops/kernels/all.hpp"

namespace troupe::cpu {

// Each family's table, defined in the file of that name.
activation_kernels activation();
adam_step_kernels adam_step();
lamb_step_kernels lamb_step();
sgd_step_kernels sgd_step();
conv2d_kernels conv2d();
convert_kernels convert();
pooling_kernels pooling();
norm_kernels norm();
softmax_kernels softmax();
cross_entropy_kernels cross_entropy();
linear_kernels linear();
batch_norm_kernels batch_norm();

}  // namespace troupe::cpu
