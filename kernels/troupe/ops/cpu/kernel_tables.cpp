#include "troupe/ops/cpu/kernel_tables.hpp"

namespace troupe {

const device_kernels& cpu_kernels() {
  static const device_kernels all{
      .activation = cpu::activation(),
      .adam_step = cpu::adam_step(),
      .attention = cpu::attention(),
      .batch_norm = cpu::batch_norm(),
      .conv2d = cpu::conv2d(),
      .convert = cpu::convert(),
      .cross_entropy = cpu::cross_entropy(),
      .dropout = cpu::dropout(),
      .elementwise = cpu::elementwise(),
      .lamb_step = cpu::lamb_step(),
      .mse_loss = cpu::mse_loss(),
      .norm = cpu::norm(),
      .pooling = cpu::pooling(),
      .products = cpu::products(),
      .rearrange = cpu::rearrange(),
      .reduction = cpu::reduction(),
      .rows = cpu::rows(),
      .sgd_step = cpu::sgd_step(),
      .softmax = cpu::softmax(),
      .top_k = cpu::top_k(),
  };
  return all;
}

}  // namespace troupe
