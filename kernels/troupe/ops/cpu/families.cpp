#include "troupe/ops/cpu/families.hpp"

namespace troupe {

const device_kernels& cpu_kernels() {
  static const device_kernels all{.activation = cpu::activation(),
                                  .linear = cpu::linear(),
                                  .matmul = cpu::matmul(),
                                  .attention = cpu::attention()};
  return all;
}

}  // namespace troupe
