#pragma once
#include "troupe/ops/kernels/all.hpp"

namespace troupe::cpu {

// Each family's table, defined in the file of that name.
activation_kernels activation();
conv2d_kernels conv2d();
pooling_kernels pooling();
batch_norm_kernels batch_norm();

}  // namespace troupe::cpu
