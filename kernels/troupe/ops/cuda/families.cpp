#include "troupe/ops/cuda/families.hpp"

namespace troupe {

const device_kernels& cuda_kernels(device) {
  static const device_kernels all{.activation = cuda::activation()};
  return all;
}

}  // namespace troupe
