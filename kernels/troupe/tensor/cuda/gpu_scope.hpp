#pragma once
#include <new>

namespace troupe {

/// Sets the current GPU of this thread while it lives (PyTorch's CUDAGuard). CUDA creates a context, which
/// takes hundreds of megabytes, on a GPU that becomes current, and every thread starts with GPU 0. So the
/// previous GPU is restored only if the process has a context on it; otherwise this GPU stays current.
class gpu_scope {
 public:
  /// Throws cuda_error.
  explicit gpu_scope(int index);
  /// For destructors. If it fails, the calls within the scope fail too.
  gpu_scope(int index, const std::nothrow_t&) noexcept;
  ~gpu_scope();
  gpu_scope(const gpu_scope&) = delete;
  gpu_scope& operator=(const gpu_scope&) = delete;

 private:
  static constexpr int none = -1;
  int outer_ = none;  ///< the current GPU before, which the destructor restores
};

}  // namespace troupe
