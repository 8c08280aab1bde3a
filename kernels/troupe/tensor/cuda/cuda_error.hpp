#pragma once
#include <cuda_runtime_api.h>

#include <source_location>
#include <stdexcept>
#include <string_view>

namespace troupe {

/// CUDA or one of its libraries refused: `what` names the library, its words and the function of ours that
/// called. After an error inside a kernel (an illegal address, say) the process can use its GPUs no more.
class cuda_error : public std::runtime_error {
 public:
  cuda_error(std::string_view library, std::string_view problem, const std::source_location& where);
  /// `problem`, and during what it came up, such as "in the product f32 [2, 3] x [3, 4]".
  cuda_error(const cuda_error& problem, std::string_view during);
};

void check(cudaError_t status, const std::source_location& where = std::source_location::current());

}  // namespace troupe
