#include "troupe/ops/cpu/families.hpp"

namespace troupe {

const device_kernels& cpu_kernels() {
  static const device_kernels all{.activation = cpu::activation(),
                                  .linear = cpu::linear(),
                                  .matmul = cpu::matmul(),
                                  .attention = cpu::attention(),
                                  .rows = cpu::rows(),
                                  .top_k = cpu::top_k()};
  return all;
}

}  // namespace troupe
