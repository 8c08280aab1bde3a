#include "troupe/ops/detail/gpu_class.hpp"

#include "troupe/ops/cuda/libraries/cublaslt.hpp"
#include "troupe/ops/cuda/libraries/cudnn_version.hpp"
#include "troupe/ops/matmul_precision.hpp"
#include "troupe/tensor/devices.hpp"

namespace troupe {
namespace {

std::string cublaslt_version() {
  auto version = cuda::cublaslt().get_version();
  return std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}

}  // namespace

std::string gpu_class(device target) {
  auto cudnn = cuda::cudnn_version();
  auto precision = current_matmul_precision() == matmul_precision::tf32 ? "+tf32" : "";
  return "cuda-" + cuda_version() + "+cublaslt-" + cublaslt_version() + "+cudnn-" +
         (cudnn.empty() ? "none" : cudnn) + precision + "+" + device_name(target);
}

}  // namespace troupe
