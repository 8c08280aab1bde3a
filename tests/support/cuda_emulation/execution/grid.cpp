#include "support/cuda_emulation/execution/grid.hpp"

#include "support/cuda_emulation/execution/shared_memory.hpp"

namespace troupe::emulation {
namespace {

constinit thread_local void* dynamic_memory = nullptr;

/// The memory that an OS thread keeps between launches.
struct processor {
  block blocks;
  dynamic_shared_memory_arena memory;
};

processor& processor_of_thread() {
  static thread_local processor own;
  return own;
}

}  // namespace

void run_grid(const launch_shape& shape, const execution_options& options, const char* kernel_type,
              block::thread_body body, const void* arguments) {
  auto& on = processor_of_thread();
  on.blocks.prepare(shape, options, kernel_type, body, arguments);
  unset_static_shared_memory();
  for (unsigned z = 0; z < shape.grid.z; ++z)
    for (unsigned y = 0; y < shape.grid.y; ++y)
      for (unsigned x = 0; x < shape.grid.x; ++x) {
        dynamic_memory = on.memory.take(shape.memory_bytes);
        on.blocks.run({x, y, z});
      }
}

void* dynamic_memory_of_block() { return dynamic_memory; }

}  // namespace troupe::emulation
