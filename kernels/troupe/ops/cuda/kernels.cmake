# Every file of kernels for GPUs: compiled by nvcc for troupe::ops, and by g++ for tests on emulated GPUs.
set(ops_kernels
  activation.cu argmax.cu attention_backward.cu attention_forward.cu attention_in_f32.cu attention_row_sums.cu batch_norm.cu bias.cu
  convert.cu cross_entropy.cu direct_convolution.cu dropout.cu elementwise.cu lamb_step.cu mse_loss.cu norm.cu
  optimizer_steps.cu pooling.cu rearrange.cu reduction.cu row_sum.cu rows.cu softmax.cu tiled_product.cu top_k.cu
  total_reduction.cu)
list(TRANSFORM ops_kernels PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
