#pragma once
#include <cuda_runtime_api.h>

namespace troupe {

/// Owns a CUDA stream of the GPU that is current at construction and at destruction.
class owned_stream {
 public:
  /// Throws cuda_error.
  owned_stream();
  ~owned_stream() { cudaStreamDestroy(stream_); }
  owned_stream(const owned_stream&) = delete;
  owned_stream& operator=(const owned_stream&) = delete;

  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace troupe
