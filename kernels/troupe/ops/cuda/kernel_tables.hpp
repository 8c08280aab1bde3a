#pragma once
#include "troupe/ops/kernels/all.hpp"

namespace troupe::cuda {

// The kernel table of each operation family, defined in the file of that name; products in
// matrix_product.cpp, the steps of Adam and SGD in optimizer_steps.cu.
activation_kernels activation();
adam_step_kernels adam_step();
attention_kernels attention();
batch_norm_kernels batch_norm();
conv2d_kernels conv2d();
convert_kernels convert();
cross_entropy_kernels cross_entropy();
dropout_kernels dropout();
elementwise_kernels elementwise();
lamb_step_kernels lamb_step();
mse_loss_kernels mse_loss();
norm_kernels norm();
pooling_kernels pooling();
product_kernels products();
rearrange_kernels rearrange();
reduction_kernels reduction();
row_kernels rows();
sgd_step_kernels sgd_step();
softmax_kernels softmax();
top_k_kernels top_k();

}  // namespace troupe::cuda
