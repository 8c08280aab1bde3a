#pragma once
#include <typeinfo>

#include "support/cuda_emulation/execution/block.hpp"

namespace troupe::emulation {

/// Runs `body(arguments)` once for each thread of the grid, block after block, on the calling OS thread.
void run_grid(const launch_shape& shape, const execution_options& options, const char* kernel_type,
              block::thread_body body, const void* arguments);

/// Runs `body()` once for each thread. Kernel is the name in the text of faults.
template <class Kernel, class Body>
void run_grid(const launch_shape& shape, const execution_options& options, const Body& body) {
  run_grid(
      shape, options, typeid(Kernel).name(), [](const void* of) { (*static_cast<const Body*>(of))(); },
      &body);
}

/// The dynamic shared memory of the running block.
void* dynamic_memory_of_block();

}  // namespace troupe::emulation
