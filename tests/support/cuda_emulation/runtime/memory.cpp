// Memory of GPUs and pinned memory.
#include "machine.hpp"
#include "memory_faults.hpp"

using troupe::emulation::call;
using troupe::emulation::current_gpu;
using troupe::emulation::machine;
using troupe::emulation::memory_block;
using troupe::emulation::refuse;
using troupe::emulation::run_all;
using troupe::emulation::the_machine;
using troupe::emulation::watch_memory_faults;

namespace {

/// Whether a capture, of this thread or one that restricts all threads, forbids calls that wait for a GPU.
bool is_unsafe_in_capture(const machine& all) {
  for (const auto& each : all.streams)
    if (each->capture && each->capture_mode != cudaStreamCaptureModeRelaxed) return true;
  return false;
}

cudaError_t take(void** memory, int gpu, std::size_t size_bytes) {
  auto& all = the_machine();
  std::lock_guard lock(all.mutex);
  if (is_unsafe_in_capture(all)) return cudaErrorStreamCaptureUnsupported;
  watch_memory_faults();
  *memory = size_bytes > 0 ? all.blocks.take(gpu, size_bytes) : nullptr;
  return *memory || size_bytes == 0 ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t give_back(int gpu, void* memory) {
  auto& all = the_machine();
  std::lock_guard lock(all.mutex);
  if (is_unsafe_in_capture(all)) return cudaErrorStreamCaptureUnsupported;
  if (memory) all.blocks.give_back(gpu, memory);
  return cudaSuccess;
}

int gpu_of(const void* memory) {
  auto& all = the_machine();
  std::lock_guard lock(all.mutex);
  auto gpu = all.blocks.gpu_of(memory);
  if (gpu == memory_block::pinned) refuse("expected memory of cudaMalloc to free, got pinned memory");
  return gpu;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** memory, std::size_t size_bytes) {
  return call(__func__, [=] { return take(memory, current_gpu(), size_bytes); });
}

// Waits for the memory's GPU, as CUDA does. The caller must have waited for work on other GPUs that uses it.
cudaError_t cudaFree(void* memory) {
  return call(__func__, [=] {
    if (!memory) return cudaSuccess;
    auto gpu = gpu_of(memory);
    run_all(gpu);
    return give_back(gpu, memory);
  });
}

cudaError_t cudaHostAlloc(void** memory, std::size_t size_bytes, unsigned) {
  return call(__func__, [=] { return take(memory, memory_block::pinned, size_bytes); });
}

// Does not wait: CUDA does not guarantee that it does.
cudaError_t cudaFreeHost(void* memory) {
  return call(__func__, [=] { return give_back(memory_block::pinned, memory); });
}
}
