#include "troupe/ops/cpu/families.hpp"

namespace troupe {

const device_kernels& cpu_kernels() {
  static const device_kernels all{
      .activation = cpu::activation(), .conv2d = cpu::conv2d(), .pooling = cpu::pooling()};
      .activation = cpu::activation(),
      .norm = cpu::norm(),
  };
  return all;
}

}  // namespace troupe
