#include "troupe/ops/kernels/all.hpp"
#include "troupe/tensor/devices.hpp"

namespace troupe {

const device_kernels& cuda_kernels(device target) {
  require_device(target);
  throw std::logic_error("a GPU without CUDA");
}

}  // namespace troupe
