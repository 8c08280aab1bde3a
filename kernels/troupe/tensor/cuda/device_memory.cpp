#include "troupe/tensor/detail/device_memory.hpp"

#include <new>

#include "troupe/tensor/cuda/cuda_error.hpp"
#include "troupe/tensor/cuda/gpu.hpp"
#include "troupe/tensor/cuda/graph_capture.hpp"
#include "troupe/tensor/cuda/peer_access.hpp"

namespace troupe {
namespace {

class cuda_stream_event final : public stream_event {
 public:
  /// In a stream of the GPU, which is the current one.
  cuda_stream_event(int gpu, cudaStream_t stream, event_timing timing) : gpu_(gpu) {
    auto flags = timing == event_timing::timed ? cudaEventDefault : cudaEventDisableTiming;
    check(cudaEventCreateWithFlags(&event_, flags | cudaEventBlockingSync));
    auto status = cudaEventRecord(event_, stream);
    if (status != cudaSuccess) cudaEventDestroy(event_);
    check(status);
  }
  ~cuda_stream_event() override {
    gpu_scope scope(gpu_, std::nothrow);
    cudaEventDestroy(event_);
  }
  cuda_stream_event(const cuda_stream_event&) = delete;
  cuda_stream_event& operator=(const cuda_stream_event&) = delete;

  bool is_reached() const override {
    gpu_scope scope(gpu_);
    auto status = cudaEventQuery(event_);
    if (status != cudaErrorNotReady) check(status);
    if (status == cudaErrorNotReady)
      cudaGetLastError();  // which is no error, though some versions keep it as one
    return status == cudaSuccess;
  }
  void wait() const override {
    gpu_scope scope(gpu_);
    check(cudaEventSynchronize(event_));
  }
  /// Makes later work in the stream, of any GPU, wait for it.
  void order_before(cudaStream_t stream) const { check(cudaStreamWaitEvent(stream, event_, 0)); }
  std::chrono::nanoseconds since(const stream_event& earlier) const override {
    gpu_scope scope(gpu_);
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, static_cast<const cuda_stream_event&>(earlier).event_, event_));
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double, std::milli>(milliseconds));
  }

 private:
  int gpu_;
  cudaEvent_t event_ = nullptr;
};

/// Makes later work of one GPU wait for what is queued on another one by now.
void order(gpu& earlier, gpu& later) {
  gpu_scope scope(earlier.index());
  cuda_stream_event(earlier.index(), earlier.stream(), event_timing::none).order_before(later.stream());
}

// The source's stream waits for the target's stream, which may still use the target memory, and copies; then
// the target's stream waits for the copy. The source GPU writes directly into the target's memory if peer
// access is possible.
void copy_between(gpu& to_gpu, void* to, gpu& from_gpu, const void* from, std::size_t size_bytes) {
  refuse_to_wait(to_gpu.index(), "copy between GPUs");
  refuse_to_wait(from_gpu.index(), "copy between GPUs");
  enable_peer_access(from_gpu.index(), to_gpu.index());
  order(to_gpu, from_gpu);
  gpu_scope scope(from_gpu.index());
  check(cudaMemcpyPeerAsync(to, to_gpu.index(), from, from_gpu.index(), size_bytes, from_gpu.stream()));
  order(from_gpu, to_gpu);
}

void copy_to_gpu(gpu& owner, std::byte* to, const std::byte* from, std::size_t size_bytes) {
  auto* capture = capture_on(owner.index());
  if (!capture) return owner.staging().to_gpu(to, from, size_bytes);
  const auto* pinned = keep_pinned(*capture, from, size_bytes);
  check(cudaMemcpyAsync(to, pinned, size_bytes, cudaMemcpyHostToDevice, owner.stream()));
}

void copy_from_gpu(gpu& owner, std::byte* to, const std::byte* from, std::size_t size_bytes) {
  refuse_to_wait(owner.index(), "copy to the CPU");
  owner.staging().from_gpu(to, from, size_bytes);
}

/// Runs what queues a copy in the stream. If it throws, what is queued is done before the memory is free:
/// nothing else waits for it.
template <class Queue>
void synchronize_on_failure(cudaStream_t stream, Queue queue) {
  try {
    queue();
  } catch (...) {
    cudaStreamSynchronize(stream);
    throw;
  }
}

}  // namespace

std::shared_ptr<caching_allocator> cuda_capture_allocator_of(int index) {
  auto* capture = capture_on(index);
  if (!capture) return nullptr;
  return {capture->pool, &capture->pool->allocator()};
}

caching_allocator& cuda_allocator_of(int index) { return gpu_at(index).allocator(); }

void copy_bytes_cuda(void* to, device to_where, const void* from, device from_where, std::size_t size_bytes) {
  constexpr auto cpu = device::kind::cpu;
  auto& owner = gpu_at(to_where.type == cpu ? from_where.index : to_where.index);
  if (size_bytes == 0) return;
  gpu_scope scope(owner.index());
  auto* target = static_cast<std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  if (from_where.type == cpu)
    copy_to_gpu(owner, target, source, size_bytes);
  else if (to_where.type == cpu)
    copy_from_gpu(owner, target, source, size_bytes);
  else if (to_where == from_where)
    check(cudaMemcpyAsync(to, from, size_bytes, cudaMemcpyDeviceToDevice, owner.stream()));
  else
    copy_between(owner, to, gpu_at(from_where.index), from, size_bytes);
}

void copy_to_idle_cuda(void* to, int to_index, const void* from, std::size_t size_bytes) {
  if (size_bytes == 0) return;
  auto& target = gpu_at(to_index);
  gpu_scope scope(to_index);
  synchronize_on_failure(target.arrival_stream(), [&] {
    target.arrival_staging().to_gpu(static_cast<std::byte*>(to), static_cast<const std::byte*>(from),
                                    size_bytes);
    cuda_stream_event(to_index, target.arrival_stream(), event_timing::none)
        .order_before(target.own_stream());
  });
}

void copy_between_gpus(const stream_event& computed, void* to, int to_index, const void* from, int from_index,
                       std::size_t size_bytes, std::shared_ptr<const void> source) {
  if (size_bytes == 0) return;
  auto &target = gpu_at(to_index), &owner = gpu_at(from_index);
  enable_peer_access(to_index, from_index);
  gpu_scope scope(to_index);
  auto stream = target.peer_stream();
  synchronize_on_failure(stream, [&] {
    static_cast<const cuda_stream_event&>(computed).order_before(stream);
    check(cudaMemcpyPeerAsync(to, to_index, from, from_index, size_bytes, stream));
    auto copied = std::make_unique<cuda_stream_event>(to_index, stream, event_timing::none);
    copied->order_before(target.own_stream());
    owner.keep_until(std::move(copied), std::move(source));
  });
}

std::unique_ptr<stream_event> record_cuda(int index, event_timing timing) {
  auto& owner = gpu_at(index);
  refuse_to_wait(index, "asynchronous copy");
  gpu_scope scope(index);
  return std::make_unique<cuda_stream_event>(index, owner.own_stream(), timing);
}

std::unique_ptr<stream_event> record_idle_cuda(int index) {
  auto& owner = gpu_at(index);
  gpu_scope scope(index);
  return std::make_unique<cuda_stream_event>(index, owner.idle_stream(), event_timing::timed);
}

void forget_copied_cuda(int index) { gpu_at(index).forget_copied(); }

void copy_from_cuda_after(const stream_event& computed, host_copy_use use, void* to, int index,
                          const void* from, std::size_t size_bytes) {
  auto& owner = gpu_at(index);
  if (size_bytes == 0) return;
  gpu_scope scope(index);
  computed.wait();
  owner.staging_of(use).from_gpu(static_cast<std::byte*>(to), static_cast<const std::byte*>(from),
                                 size_bytes);
}

void fill_zero_cuda(void* memory, device target, std::size_t size_bytes) {
  auto& owner = gpu_at(target.index);
  gpu_scope scope(owner.index());
  if (size_bytes > 0) check(cudaMemsetAsync(memory, 0, size_bytes, owner.stream()));
}

}  // namespace troupe
