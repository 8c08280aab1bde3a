#include "troupe/tensor/cuda/staging_buffer.hpp"

#include <algorithm>
#include <cstring>

#include "troupe/tensor/cuda/cuda_error.hpp"

namespace troupe {

staging_buffer::slot::slot() {
  check(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
  void* pinned = nullptr;
  auto status = cudaHostAlloc(&pinned, slot_bytes, cudaHostAllocDefault);
  if (status != cudaSuccess) cudaEventDestroy(done);
  check(status);
  memory = static_cast<std::byte*>(pinned);
}

staging_buffer::slot::~slot() {
  cudaEventDestroy(done);
  cudaFreeHost(memory);
}

/// Until the GPU's last copy from or to the slot is complete, which it mostly is.
void staging_buffer::wait_for(const slot& one) {
  if (cudaEventQuery(one.done) == cudaSuccess) return;
  cudaGetLastError();  // cudaErrorNotReady is no error; others come again
  check(cudaEventSynchronize(one.done));
}

staging_buffer::~staging_buffer() { cudaStreamSynchronize(stream_); }

void staging_buffer::to_gpu(std::byte* to, const std::byte* from, std::size_t size_bytes) {
  std::lock_guard lock(mutex_);
  for (std::size_t first = 0; first < size_bytes; first += slot_bytes) {
    auto count = std::min(slot_bytes, size_bytes - first);
    auto& through = slot_at(turn_++);
    wait_for(through);
    std::memcpy(through.memory, from + first, count);
    check(cudaMemcpyAsync(to + first, through.memory, count, cudaMemcpyHostToDevice, stream_));
    check(cudaEventRecord(through.done, stream_));
  }
}

// Queues copies for all free slots ahead, and empties each slot as soon as its copy is complete.
void staging_buffer::from_gpu(std::byte* to, const std::byte* from, std::size_t size_bytes) {
  std::lock_guard lock(mutex_);
  auto num_parts = (size_bytes + slot_bytes - 1) / slot_bytes;
  auto start = turn_;
  turn_ += num_parts;
  auto bytes_of = [&](std::size_t part) { return std::min(slot_bytes, size_bytes - part * slot_bytes); };
  std::size_t queued = 0;
  for (std::size_t part = 0; part < num_parts; ++part) {
    for (; queued < num_parts && queued < part + num_slots; ++queued) {
      auto& through = slot_at(start + queued);
      wait_for(through);
      check(cudaMemcpyAsync(through.memory, from + queued * slot_bytes, bytes_of(queued),
                            cudaMemcpyDeviceToHost, stream_));
      check(cudaEventRecord(through.done, stream_));
    }
    auto& full = slot_at(start + part);
    check(cudaEventSynchronize(full.done));
    std::memcpy(to + part * slot_bytes, full.memory, bytes_of(part));
  }
}

}  // namespace troupe
