#include "troupe/tensor/cuda/cuda_error.hpp"

#include <string>

#include "troupe/error/device_lost.hpp"
#include "troupe/error/function_name.hpp"

namespace troupe {
namespace {

/// The errors after which CUDA's documentation says that "the process must be terminated and relaunched".
bool leaves_no_context(cudaError_t status) {
  switch (status) {
    case cudaErrorECCUncorrectable:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorMisalignedAddress:
    case cudaErrorAssert:
    case cudaErrorContextIsDestroyed:
    case cudaErrorUnknown:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
      return true;
    default:
      return false;
  }
}

}  // namespace

cuda_error::cuda_error(std::string_view library, std::string_view problem,
                       const std::source_location& location)
    : std::runtime_error(std::string(library) + ": " + std::string(problem) + " (in " +
                         short_function_name(location) + ")") {}

cuda_error::cuda_error(const cuda_error& problem, std::string_view during)
    : std::runtime_error(std::string(problem.what()) + ", " + std::string(during)) {}

void check(cudaError_t status, const std::source_location& location) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // or the next call would report it again
  if (leaves_no_context(status))
    throw device_lost(std::string("CUDA: ") + cudaGetErrorString(status) + " (in " +
                      short_function_name(location) + "), after which this process cannot use its GPUs");
  throw cuda_error("CUDA", cudaGetErrorString(status), location);
}

void check_not_lost(const std::source_location& location) {
  auto status = cudaPeekAtLastError();
  if (leaves_no_context(status)) check(status, location);
}

}  // namespace troupe
