#pragma once
#include "troupe/ops/kernels/all.hpp"

namespace troupe::cuda {

// Each family's table, defined in the file of that name; products in
// matrix_product.cpp, the steps' in optimizer_steps.cu.
activation_kernels activation();
adam_step_kernels adam_step();
attention_kernels attention();
convert_kernels convert();
cross_entropy_kernels cross_entropy();
dropout_kernels dropout();
elementwise_kernels elementwise();
mse_loss_kernels mse_loss();
norm_kernels norm();
product_kernels products();
reduction_kernels reduction();
row_kernels rows();
sgd_step_kernels sgd_step();
softmax_kernels softmax();

}  // namespace troupe::cuda
