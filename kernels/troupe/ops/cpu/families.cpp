#include "troupe/ops/cpu/families.hpp"

namespace troupe {

const device_kernels& cpu_kernels() {
  static const device_kernels all{
      .activation = cpu::activation(),
      .norm = cpu::norm(),
      .softmax = cpu::softmax(),
      .cross_entropy = cpu::cross_entropy(),
  };
  return all;
}

}  // namespace troupe
