#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "troupe/tensor/detail/caching_allocator.hpp"

namespace troupe {

/// The memory of a captured graph, taken from the GPU's allocator. Its blocks are returned only when the
/// graph and all tensors allocated during the capture are destroyed, so that every replay may use them.
class capture_pool final : public memory_resource {
 public:
  explicit capture_pool(caching_allocator& from) : from_(from), allocator_(*this) {}
  ~capture_pool() override;

  caching_allocator& allocator() { return allocator_; }
  void* allocate(std::size_t size_bytes) override {
    return from_.allocate(size_bytes, memory_category::activations);
  }
  void deallocate(void* block, std::size_t size_bytes) override { kept_.push_back({block, size_bytes}); }

 private:
  struct kept_block {
    void* memory;
    std::size_t size_bytes;
  };

  caching_allocator& from_;
  std::vector<kept_block> kept_;
  caching_allocator allocator_;
};

/// A graph capture in progress: while it is this thread's current one, the thread's work on GPU `index` goes
/// to `stream`.
struct graph_capture {
  int index = 0;
  cudaStream_t stream = nullptr;
  std::shared_ptr<capture_pool> pool;
  std::vector<std::shared_ptr<void>> pinned;  ///< sources of captured copies from the CPU
};

/// This thread's capture on GPU `index`; null if there is none.
graph_capture* capture_on(int index);

/// Makes `capture` this thread's current capture while it lives. Throws std::logic_error if there is one
/// already.
class capture_scope {
 public:
  explicit capture_scope(graph_capture& capture);
  ~capture_scope();
  capture_scope(const capture_scope&) = delete;
  capture_scope& operator=(const capture_scope&) = delete;
};

/// Throws std::logic_error, "[function] ...", if this thread captures on GPU `index`: a wait cannot be
/// captured.
void refuse_to_wait(int index, std::string_view function);

/// Throws std::logic_error, "[function] ...", if this thread captures on any GPU: for calls that a replay
/// would omit.
void refuse_in_capture(std::string_view function);

/// Copies CPU memory to pinned memory that lives as long as the capture.
const void* keep_pinned(graph_capture& capture, const void* from, std::size_t size_bytes);

}  // namespace troupe
