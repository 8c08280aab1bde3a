# Every file of kernels for GPUs: compiled by nvcc for troupe::ops, and by g++ for tests on emulated GPUs.
set(ops_kernels
  activation.cu reductions/argmax.cu attention/attention_backward.cu attention/attention_forward.cu attention/attention_in_f32.cu attention/attention_row_sums.cu batch_norm.cu convolution/bias.cu
  convert.cu cross_entropy.cu convolution/direct_convolution.cu dropout.cu elementwise.cu lamb_step.cu mse_loss.cu norm.cu
  optimizer_steps.cu pooling.cu rearrange.cu reduction.cu reductions/row_sum.cu rows.cu softmax.cu product/tiled_product.cu top_k.cu
  reductions/total_reduction.cu)
list(TRANSFORM ops_kernels PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
