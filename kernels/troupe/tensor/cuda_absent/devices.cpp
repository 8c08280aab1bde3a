#include "troupe/tensor/devices.hpp"

#include "troupe/error/errors.hpp"
#include "troupe/tensor/detail/device_memory.hpp"

namespace troupe {

int num_cuda_devices() { return 0; }
std::string cuda_version() { return ""; }

void require_cuda(int index) {
  throw bad_input(
      "cuda:" + std::to_string(index) +
      " is not there: Troupe was built without CUDA; install the CUDA Toolkit (nvcc must be on the "
      "PATH) and build with cmake --preset cuda, or use cpu");
}

std::string cuda_name(int index) {
  require_cuda(index);
  return "";
}

void synchronize_cuda(int index) { require_cuda(index); }

}  // namespace troupe
