#include "troupe/ops/cpu/families.hpp"

namespace troupe {

const device_kernels& cpu_kernels() {
  static const device_kernels all{
      .activation = cpu::activation(),
      .adam_step = cpu::adam_step(),
      .batch_norm = cpu::batch_norm(),
      .conv2d = cpu::conv2d(),
      .convert = cpu::convert(),
      .cross_entropy = cpu::cross_entropy(),
      .lamb_step = cpu::lamb_step(),
      .linear = cpu::linear(),
      .norm = cpu::norm(),
      .pooling = cpu::pooling(),
      .sgd_step = cpu::sgd_step(),
      .softmax = cpu::softmax(),
  };
  return all;
}

}  // namespace troupe
