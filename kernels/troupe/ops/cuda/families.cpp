#include "troupe/ops/cuda/families.hpp"

namespace troupe {

const device_kernels& cuda_kernels(device) {
  static const device_kernels all = [] {
    device_kernels those;
    those.activation = cuda::activation();
    those.linear = cuda::linear();
    return those;
  }();
  return all;
}

}  // namespace troupe
