#include "troupe/ops/cpu/families.hpp"

namespace troupe {

const device_kernels& cpu_kernels() {
  static const device_kernels all{
      .activation = cpu::activation(),
      .adam_step = cpu::adam_step(),
      .dropout = cpu::dropout(),
      .lamb_step = cpu::lamb_step(),
      .reduction = cpu::reduction(),
      .sgd_step = cpu::sgd_step(),
      .conv2d = cpu::conv2d(),
      .pooling = cpu::pooling(),
      .norm = cpu::norm(),
      .linear = cpu::linear(),
  };
  return all;
}

}  // namespace troupe
