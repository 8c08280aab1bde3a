#include "troupe/ops/cuda/families.hpp"

namespace troupe {

const device_kernels& cuda_kernels(device) {
  static const device_kernels all = [] {
    device_kernels those;
    those.activation = cuda::activation();
    those.adam_step = cuda::adam_step();
    those.attention = cuda::attention();
    those.convert = cuda::convert();
    those.cross_entropy = cuda::cross_entropy();
    those.dropout = cuda::dropout();
    those.elementwise = cuda::elementwise();
    those.mse_loss = cuda::mse_loss();
    those.norm = cuda::norm();
    those.products = cuda::products();
    those.reduction = cuda::reduction();
    those.rows = cuda::rows();
    those.sgd_step = cuda::sgd_step();
    those.softmax = cuda::softmax();
    return those;
  }();
  return all;
}

}  // namespace troupe
