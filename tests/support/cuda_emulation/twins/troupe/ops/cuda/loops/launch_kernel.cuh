#pragma once

// In place of the header of this name: launches that run on the CPU.

#include <cuda_runtime_api.h>

#include "support/cuda_emulation/execution/grid.hpp"
#include "support/cuda_emulation/execution/launch_limits.hpp"
#include "support/cuda_emulation/runtime/stream_work.hpp"

namespace troupe::cuda {

template <class Kernel, class... Arguments>
void launch_kernel(cudaStream_t stream, dim3 blocks, unsigned num_threads, int memory_bytes, Kernel kernel,
                   Arguments... arguments) {
  emulation::launch_shape shape{blocks, num_threads, static_cast<unsigned>(memory_bytes)};
  emulation::check_launch(shape, reinterpret_cast<const void*>(kernel));
  emulation::enqueue(stream, [=] {
    emulation::run_grid<Kernel>(shape, emulation::process_options(), [&] { kernel(arguments...); });
  });
}

template <class T>
T* dynamic_shared_memory() {
  return static_cast<T*>(emulation::dynamic_memory_of_block());
}

}  // namespace troupe::cuda
