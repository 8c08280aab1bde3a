#include "troupe/ops/cpu/families.hpp"

namespace troupe {

const device_kernels& cpu_kernels() {
  static const device_kernels all{.activation = cpu::activation(),
                                  .conv2d = cpu::conv2d(),
                                  .pooling = cpu::pooling(),
                                  .batch_norm = cpu::batch_norm()};
  return all;
}

}  // namespace troupe
