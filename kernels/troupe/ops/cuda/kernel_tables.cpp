#include "troupe/ops/cuda/kernel_tables.hpp"

namespace troupe {

const device_kernels& cuda_kernels(device) {
  static const device_kernels all = [] {
    device_kernels those;
    those.activation = cuda::activation();
    those.adam_step = cuda::adam_step();
    those.attention = cuda::attention();
    those.batch_norm = cuda::batch_norm();
    those.conv2d = cuda::conv2d();
    those.convert = cuda::convert();
    those.cross_entropy = cuda::cross_entropy();
    those.dropout = cuda::dropout();
    those.elementwise = cuda::elementwise();
    those.lamb_step = cuda::lamb_step();
    those.mse_loss = cuda::mse_loss();
    those.norm = cuda::norm();
    those.pooling = cuda::pooling();
    those.products = cuda::products();
    those.rearrange = cuda::rearrange();
    those.reduction = cuda::reduction();
    those.rows = cuda::rows();
    those.sgd_step = cuda::sgd_step();
    those.softmax = cuda::softmax();
    those.top_k = cuda::top_k();
    return those;
  }();
  return all;
}

}  // namespace troupe
