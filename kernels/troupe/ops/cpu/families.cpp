#include "troupe/ops/cpu/families.hpp"

namespace troupe {

const device_kernels& cpu_kernels() {
  static const device_kernels all{
      .activation = cpu::activation(),
      .conv2d = cpu::conv2d(),
      .pooling = cpu::pooling(),
      .norm = cpu::norm(),
      .softmax = cpu::softmax(),
      .cross_entropy = cpu::cross_entropy(),
      .elementwise = cpu::elementwise(),
      .reduction = cpu::reduction(),
      .convert = cpu::convert(),
      .rearrange = cpu::rearrange(),
      .linear = cpu::linear(),
  };
  return all;
}

}  // namespace troupe
