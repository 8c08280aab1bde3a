#include "troupe/tensor/cuda/cuda_error.hpp"

#include <string>

#include "troupe/error/function_name.hpp"

namespace troupe {

cuda_error::cuda_error(std::string_view library, std::string_view problem,
                       const std::source_location& location)
    : std::runtime_error(std::string(library) + ": " + std::string(problem) + " (in " +
                         short_function_name(location) + ")") {}

cuda_error::cuda_error(const cuda_error& problem, std::string_view during)
    : std::runtime_error(std::string(problem.what()) + ", " + std::string(during)) {}

void check(cudaError_t status, const std::source_location& location) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // or the next call would report it again
  throw cuda_error("CUDA", cudaGetErrorString(status), location);
}

}  // namespace troupe
