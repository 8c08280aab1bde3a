#pragma once
#include <new>

namespace troupe {

/// Makes a GPU this thread's current one for a while. CUDA makes a context, which takes hundreds of
/// megabytes, on a GPU that becomes current, and GPU 0 is what each thread begins with. So the GPU that was
/// current before becomes it again only if the process has a context there; otherwise nobody has used it, and
/// this one stays.
class gpu_scope {
 public:
  /// Throws cuda_error.
  explicit gpu_scope(int index);
  /// For destructors. Where this fails, so do the calls within: CUDA can be used no more.
  gpu_scope(int index, const std::nothrow_t&) noexcept;
  ~gpu_scope();
  gpu_scope(const gpu_scope&) = delete;
  gpu_scope& operator=(const gpu_scope&) = delete;

 private:
  static constexpr int none = -1;
  int outer_ = none;  ///< becomes current again
};

}  // namespace troupe
