#pragma once
#include "troupe/ops/kernels/all.hpp"

namespace troupe::cpu {

// Each family's table, defined in the file of that name.
activation_kernels activation();
adam_step_kernels adam_step();
batch_norm_kernels batch_norm();
conv2d_kernels conv2d();
convert_kernels convert();
cross_entropy_kernels cross_entropy();
lamb_step_kernels lamb_step();
linear_kernels linear();
norm_kernels norm();
pooling_kernels pooling();
sgd_step_kernels sgd_step();
softmax_kernels softmax();

}  // namespace troupe::cpu
