#include "support/cuda_emulation/execution/launch_limits.hpp"

#include <map>
#include <mutex>

#include "support/cuda_emulation/execution/fault.hpp"

namespace troupe::emulation {
namespace {

std::mutex mutex;
std::map<const void*, std::size_t> allowed;

std::size_t allowed_for(const void* kernel) {
  std::lock_guard lock(mutex);
  auto found = allowed.find(kernel);
  return found == allowed.end() ? unasked_shared_memory : found->second;
}

void check_range(const char* what, std::size_t value, std::size_t most) {
  if (value == 0 || value > most)
    fail("launch: expected 1 to " + std::to_string(most) + " " + what + ", got " + std::to_string(value));
}

void check_memory(std::size_t value, std::size_t most, const char* advice) {
  if (value > most)
    fail("launch: expected at most " + std::to_string(most) + " bytes of dynamic shared memory, got " +
         std::to_string(value) + advice);
}

}  // namespace

void allow_shared_memory(const void* kernel, std::size_t size_bytes) {
  check_memory(size_bytes, largest_shared_memory, "; some GPUs from 8.0 on have no more");
  std::lock_guard lock(mutex);
  allowed[kernel] = size_bytes;
}

void check_launch(const launch_shape& shape, const void* kernel) {
  check_range("threads", shape.num_threads, 1024);
  check_range("blocks in x", shape.grid.x, 0x7fffffff);
  check_range("blocks in y", shape.grid.y, 65535);
  check_range("blocks in z", shape.grid.z, 65535);
  check_memory(shape.memory_bytes, allowed_for(kernel), "; call cudaFuncSetAttribute");
}

}  // namespace troupe::emulation
