#pragma once
#include "troupe/ops/kernels/all.hpp"

namespace troupe::cpu {

// Each family's table, defined in the file of that name.
activation_kernels activation();
norm_kernels norm();
softmax_kernels softmax();
cross_entropy_kernels cross_entropy();

}  // namespace troupe::cpu
