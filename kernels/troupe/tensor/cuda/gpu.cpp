#include "troupe/tensor/cuda/gpu.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <iterator>
#include <memory>
#include <mutex>

#include "troupe/tensor/cuda/cuda_error.hpp"
#include "troupe/tensor/cuda/graph_capture.hpp"
#include "troupe/tensor/detail/device_memory.hpp"
#include "troupe/tensor/devices.hpp"

namespace troupe {
namespace {

/// A gpu object that the first thread to need it creates.
struct place {
  std::mutex making;
  std::unique_ptr<gpu> owner;
  std::atomic<gpu*> made = nullptr;
};

}  // namespace

owned_stream::owned_stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }

gpu::gpu(int index)
    : index_(index),
      memory_(index),
      allocator_(memory_),
      staging_(stream_.get()),
      arrival_staging_(arrival_stream_.get()),
      message_staging_(message_stream_.get()),
      state_staging_(state_stream_.get()) {}

cudaStream_t gpu::stream() const {
  const auto* capture = capture_on(index_);
  return capture ? capture->stream : own_stream();
}

void gpu::keep_until(std::unique_ptr<stream_event> copied, std::shared_ptr<const void> memory) {
  forget_copied();
  std::lock_guard lock(keeping_);
  kept_.push_back({std::move(copied), std::move(memory)});
}

void gpu::forget_copied() {
  std::vector<kept_memory> done;  // freed after the lock
  std::lock_guard lock(keeping_);
  auto first = std::stable_partition(kept_.begin(), kept_.end(),
                                     [](const kept_memory& each) { return !each.copied->is_reached(); });
  std::move(first, kept_.end(), std::back_inserter(done));
  kept_.erase(first, kept_.end());
}

void* gpu::memory::allocate(std::size_t size_bytes) {
  gpu_scope scope(index_);
  void* block = nullptr;
  auto status = cudaMalloc(&block, size_bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return nullptr;
  }
  check(status);
  return block;
}

// cudaFree waits for all queued work of the GPU.
void gpu::memory::deallocate(void* block, std::size_t) {
  gpu_scope scope(index_);
  check(cudaFree(block));
}

gpu& gpu_at(int index) {
  require_cuda(index);
  // Never destroyed: tensors with static storage may be destroyed later.
  static auto* places = new std::deque<place>(static_cast<std::size_t>(num_cuda_devices()));
  auto& at = (*places)[static_cast<std::size_t>(index)];
  if (auto* made = at.made.load(std::memory_order_acquire)) return *made;
  // No std::call_once: after an exception in it, the thread sanitizer blocks further attempts.
  std::lock_guard lock(at.making);
  if (!at.owner) {
    gpu_scope scope(index);
    at.owner = std::make_unique<gpu>(index);
  }
  at.made.store(at.owner.get(), std::memory_order_release);
  return *at.owner;
}

cudaStream_t stream_of(device target) { return gpu_at(target.index).stream(); }

}  // namespace troupe
