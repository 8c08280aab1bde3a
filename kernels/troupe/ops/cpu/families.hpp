#pragma once
#include "troupe/ops/kernels/all.hpp"

namespace troupe::cpu {

// Each family's table, defined in the file of that name.
activation_kernels activation();
conv2d_kernels conv2d();
pooling_kernels pooling();
norm_kernels norm();
softmax_kernels softmax();
elementwise_kernels elementwise();
reduction_kernels reduction();
convert_kernels convert();
rearrange_kernels rearrange();
cross_entropy_kernels cross_entropy();
linear_kernels linear();

}  // namespace troupe::cpu
