#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <mutex>
#include <vector>

#include "troupe/tensor/async/async_host_copy.hpp"
#include "troupe/tensor/cuda/gpu_scope.hpp"
#include "troupe/tensor/cuda/staging_buffer.hpp"
#include "troupe/tensor/detail/caching_allocator.hpp"
#include "troupe/tensor/detail/device_memory.hpp"

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

/// The stream and allocator of one GPU in this process. All threads use one stream, so work runs in the order
/// in which it was queued. Freed memory may therefore be reused at once: work that still uses it was queued
/// before any later work.
class gpu {
 public:
  /// Must be called with this GPU as the current device.
  explicit gpu(int index);

  int index() const { return index_; }
  /// The stream for this thread's work: during a graph capture (graph_capture.hpp) the capture's stream.
  cudaStream_t stream() const;
  /// The GPU's stream, also during a capture.
  cudaStream_t own_stream() const { return stream_.get(); }
  caching_allocator& allocator() { return allocator_; }
  staging_buffer& staging() { return staging_; }
  /// For copies from other GPUs that their other work does not wait for.
  cudaStream_t peer_stream() const { return peer_stream_.get(); }
  /// For copies from the CPU that do not wait for the GPU's other work.
  cudaStream_t arrival_stream() const { return arrival_stream_.get(); }
  staging_buffer& arrival_staging() { return arrival_staging_; }
  /// Without work: what is recorded there is reached at once.
  cudaStream_t idle_stream() const { return idle_stream_.get(); }
  /// Keeps memory of this GPU, which another one copies, until the event is reached, and then until the next
  /// call of this or of forget_copied(). Thread-safe, both.
  void keep_until(std::unique_ptr<stream_event> copied, std::shared_ptr<const void> memory);
  void forget_copied();
  /// For copies to the CPU that the GPU's other work does not wait for, nor those of another use.
  staging_buffer& staging_of(host_copy_use use) {
    return use == host_copy_use::message ? message_staging_ : state_staging_;
  }

 private:
  class memory final : public memory_resource {
   public:
    explicit memory(int index) : index_(index) {}
    void* allocate(std::size_t size_bytes) override;
    void deallocate(void* block, std::size_t size_bytes) override;
    std::unique_ptr<stream_event> used_until() override { return record_cuda(index_); }

   private:
    int index_;
  };

  int index_;
  struct kept_memory {
    std::unique_ptr<stream_event> copied;
    std::shared_ptr<const void> memory;
  };
  std::mutex keeping_;
  std::vector<kept_memory> kept_;
  owned_stream stream_, idle_stream_, peer_stream_, arrival_stream_, message_stream_, state_stream_;
  memory memory_;
  caching_allocator allocator_;
  staging_buffer staging_, arrival_staging_, message_staging_, state_staging_;
};

/// The object of GPU `index`, created at first use; it lives until the process ends. Thread-safe. Throws
/// bad_input if the GPU does not exist.
gpu& gpu_at(int index);

/// gpu_at(index).stream()
cudaStream_t stream_of(device target);

}  // namespace troupe
