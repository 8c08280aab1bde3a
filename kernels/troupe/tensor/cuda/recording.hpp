#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "troupe/tensor/block_cache.hpp"

namespace troupe {

/// What a recording takes from its GPU's cache: its blocks go back there when neither the recording nor a
/// tensor made in it is left, so that every replay finds them.
class recording_pool final : public memory_source {
 public:
  explicit recording_pool(block_cache& from) : from_(from), cache_(*this) {}
  ~recording_pool() override;

  block_cache& cache() { return cache_; }
  void* take(std::size_t size_bytes) override { return from_.take(size_bytes, memory_category::activations); }
  void give_back(void* block, std::size_t size_bytes) override { kept_.push_back({block, size_bytes}); }

 private:
  struct kept_block {
    void* memory;
    std::size_t size_bytes;
  };

  block_cache& from_;
  std::vector<kept_block> kept_;
  block_cache cache_;
};

/// What a thread records at the moment, and where: from begin to end its work on that GPU goes to `stream`.
struct recording {
  int index = 0;
  cudaStream_t stream = nullptr;
  std::shared_ptr<recording_pool> pool;
  std::vector<std::shared_ptr<void>> pinned;  ///< what the recorded copies from the CPU read
};

/// Null unless this thread records on GPU `index`.
recording* recording_on(int index);

/// Makes `of` this thread's recording for a while. Throws std::logic_error if it has one already.
class recording_scope {
 public:
  explicit recording_scope(recording& of);
  ~recording_scope();
  recording_scope(const recording_scope&) = delete;
  recording_scope& operator=(const recording_scope&) = delete;
};

/// Throws std::logic_error, "[what] ...", if this thread records on GPU `index`: what waits cannot be
/// recorded.
void refuse_to_wait(int index, std::string_view what);

/// A copy of CPU memory that stays until the recording goes.
const void* keep_pinned(recording& in, const void* from, std::size_t size_bytes);

}  // namespace troupe
