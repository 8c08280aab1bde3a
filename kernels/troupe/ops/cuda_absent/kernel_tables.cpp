#include "troupe/ops/detail/gpu_class.hpp"
#include "troupe/ops/kernels/all.hpp"
#include "troupe/tensor/devices.hpp"

namespace troupe {

const device_kernels& cuda_kernels(device target) {
  require_device(target);
  throw std::logic_error("a GPU without CUDA");
}

std::string gpu_class(device target) {
  require_device(target);
  return "";
}

}  // namespace troupe
