#pragma once
#include <cuda_runtime_api.h>

#include <source_location>
#include <stdexcept>
#include <string_view>

namespace troupe {

/// A failed call of CUDA or one of its libraries: what() names the library, its error text and the calling
/// function.
class cuda_error : public std::runtime_error {
 public:
  cuda_error(std::string_view library, std::string_view problem, const std::source_location& location);
  /// Adds the failed operation to `problem`, such as "in the product f32 [2, 3] x [3, 4]".
  cuda_error(const cuda_error& problem, std::string_view during);
};

/// Throws cuda_error for a status other than cudaSuccess, and device_lost for one of an error within a
/// kernel, after which all calls fail in this process.
void check(cudaError_t status, const std::source_location& location = std::source_location::current());

/// After a failed call of another library: throws device_lost if it failed since this process cannot use its
/// GPUs any more.
void check_not_lost(const std::source_location& location);

}  // namespace troupe
