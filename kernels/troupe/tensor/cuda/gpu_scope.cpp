#include "troupe/tensor/cuda/gpu_scope.hpp"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "troupe/tensor/cuda/cuda_error.hpp"

namespace troupe {
namespace {

using context_query = decltype(&cuDevicePrimaryCtxGetState);

/// A driver API function: the runtime API cannot query whether a context exists without creating it. Null if
/// the driver does not have it.
context_query find_context_query() {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
#if CUDART_VERSION >= 12050
  auto status = cudaGetDriverEntryPointByVersion("cuDevicePrimaryCtxGetState", &found, 12000,
                                                 cudaEnableDefault, &result);
#else
  auto status = cudaGetDriverEntryPoint("cuDevicePrimaryCtxGetState", &found, cudaEnableDefault, &result);
#endif
  if (status != cudaSuccess) cudaGetLastError();
  if (status != cudaSuccess || result != cudaDriverEntryPointSuccess) return nullptr;
  return reinterpret_cast<context_query>(found);
}

/// Whether the GPU has a context; true if unknown. An uninitialised driver has no contexts.
bool has_context(int index) {
  static const auto query = find_context_query();
  if (!query) return true;
  unsigned flags = 0;
  int is_active = 0;
  auto status = query(index, &flags, &is_active);
  if (status != CUDA_SUCCESS) return status != CUDA_ERROR_NOT_INITIALIZED;
  return is_active != 0;
}

/// Makes GPU `index` current. Sets `outer` to the previous GPU if it is another one and has a context.
cudaError_t enter(int index, int& outer) {
  int before = index;
  auto status = cudaGetDevice(&before);
  if (status != cudaSuccess || before == index) return status;
  auto is_used = has_context(before);
  status = cudaSetDevice(index);
  if (status == cudaSuccess && is_used) outer = before;
  return status;
}

}  // namespace

gpu_scope::gpu_scope(int index) { check(enter(index, outer_)); }

gpu_scope::gpu_scope(int index, const std::nothrow_t&) noexcept {
  if (enter(index, outer_) != cudaSuccess) cudaGetLastError();
}

gpu_scope::~gpu_scope() {
  if (outer_ != none) cudaSetDevice(outer_);
}

}  // namespace troupe
