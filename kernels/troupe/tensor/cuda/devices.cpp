#include "troupe/tensor/devices.hpp"

#include <cuda_runtime_api.h>

#include "troupe/error/errors.hpp"
#include "troupe/tensor/cuda/cuda_error.hpp"
#include "troupe/tensor/cuda/gpu.hpp"
#include "troupe/tensor/cuda/graph_capture.hpp"
#include "troupe/tensor/detail/device_memory.hpp"

namespace troupe {
namespace {

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

struct gpu_count {
  int number = 0;
  std::string problem;  // why there are none, and what to do
};

std::string problem_of(cudaError_t status) {
  int driver = 0;
  cudaDriverGetVersion(&driver);
  if (driver == 0)
    return "no NVIDIA driver is loaded; install one (Debian: apt-get install nvidia-driver, from non-free), "
           "see that nvidia-smi lists the GPU";
  if (status == cudaErrorInsufficientDriver)
    return "the NVIDIA driver is too old: it knows CUDA " + version_text(driver) +
           ", and Troupe was built with " + cuda_version() + "; install a newer driver";
  if (status == cudaErrorNoDevice || status == cudaSuccess)
    return "the NVIDIA driver sees no GPU; see what nvidia-smi lists, and whether CUDA_VISIBLE_DEVICES hides "
           "it";
  return "CUDA says \"" + std::string(cudaGetErrorString(status)) + "\"; see what nvidia-smi lists";
}

gpu_count count_gpus() {
  gpu_count found;
  auto status = cudaGetDeviceCount(&found.number);
  if (status != cudaSuccess) {
    cudaGetLastError();
    found.number = 0;
  }
  if (found.number == 0) found.problem = problem_of(status);
  return found;
}

const gpu_count& counted() {
  static const auto found = count_gpus();
  return found;
}

}  // namespace

int num_cuda_devices() { return counted().number; }

std::string cuda_version() { return version_text(CUDART_VERSION); }

void require_cuda(int index) {
  auto number = num_cuda_devices();
  if (index >= 0 && index < number) return;
  auto name = "cuda:" + std::to_string(index) + " is not there: ";
  if (number == 0) throw bad_input(name + counted().problem + ", or use cpu");
  auto there = number == 1 ? "1 GPU, cuda:0"
                           : std::to_string(number) + " GPUs, cuda:0 to cuda:" + std::to_string(number - 1);
  throw bad_input(name + "this machine has " + there);
}

std::string cuda_name(int index) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, index));
  return properties.name;
}

void synchronize_cuda(int index) {
  refuse_to_wait(index, "synchronize");
  auto& owner = gpu_at(index);
  gpu_scope scope(index);
  check(cudaStreamSynchronize(owner.own_stream()));
}

}  // namespace troupe
