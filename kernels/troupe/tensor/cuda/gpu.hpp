#pragma once
#include <cuda_runtime_api.h>

#include "troupe/tensor/block_cache.hpp"
#include "troupe/tensor/cuda/gpu_scope.hpp"
#include "troupe/tensor/cuda/owned_stream.hpp"
#include "troupe/tensor/cuda/staging_buffer.hpp"

namespace troupe {

/// What the process has of one GPU. All work on it, by whichever thread, goes through one stream, in the
/// order in which it was queued. So memory that a tensor gives back may be taken for another at once: what
/// still reads or writes it was queued before whatever comes next.
class gpu {
 public:
  /// This GPU is the current one.
  explicit gpu(int index);

  int index() const { return index_; }
  /// While this thread records (recording.hpp), the recording's.
  cudaStream_t stream() const;
  /// Whatever this thread records.
  cudaStream_t own_stream() const { return stream_.get(); }
  block_cache& cache() { return cache_; }
  staging_buffer& staging() { return staging_; }

 private:
  class memory final : public memory_source {
   public:
    explicit memory(int index) : index_(index) {}
    void* take(std::size_t size_bytes) override;
    void give_back(void* block, std::size_t size_bytes) override;

   private:
    int index_;
  };

  int index_;
  owned_stream stream_;
  memory memory_;
  block_cache cache_;
  staging_buffer staging_;
};

/// There until the process ends, made at first use. Thread-safe. Throws bad_input if it is not there.
gpu& gpu_at(int index);

/// gpu_at(index).stream()
cudaStream_t stream_of(device where);

}  // namespace troupe
