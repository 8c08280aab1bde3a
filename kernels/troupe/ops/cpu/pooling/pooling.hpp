#pragma once
#include "troupe/ops/kernels/pooling.hpp"

namespace troupe::cpu {

void max_pool_forward(const pool2d_problem& problem, const tensor& x, tensor& y, tensor& indices);
void max_pool_backward(const pool2d_problem& problem, const tensor& dy, const tensor& indices, tensor& dx);

}  // namespace troupe::cpu
