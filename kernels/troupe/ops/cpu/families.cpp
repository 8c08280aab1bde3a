#include "troupe/ops/cpu/families.hpp"

namespace troupe {

const device_kernels& cpu_kernels() {
  static const device_kernels all{
      .activation = cpu::activation(),
      .adam_step = cpu::adam_step(),
      .lamb_step = cpu::lamb_step(),
      .sgd_step = cpu::sgd_step(),
      .conv2d = cpu::conv2d(),
      .convert = cpu::convert(),
      .pooling = cpu::pooling(),
      .norm = cpu::norm(),
      .softmax = cpu::softmax(),
      .cross_entropy = cpu::cross_entropy(),
      .linear = cpu::linear(),
  };
  static const device_kernels all{.activation = cpu::activation(),
                                  .conv2d = cpu::conv2d(),
                                  .pooling = cpu::pooling(),
                                  .batch_norm = cpu::batch_norm()};
  return all;
}

}  // namespace troupe
