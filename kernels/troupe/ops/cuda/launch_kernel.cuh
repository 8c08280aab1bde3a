#pragma once

// What of a launch is not C++: the rest is in launch.cuh. Tests replace this file by one for CPUs
// (tests/support/cuda_emulation).

namespace troupe::cuda {

/// Queues `kernel(arguments...)` in `stream`, with so much dynamic_shared_memory() for each block.
/// cudaGetLastError() says whether the launch was refused.
template <class Kernel, class... Arguments>
void launch_kernel(cudaStream_t stream, dim3 blocks, unsigned num_threads, int memory_bytes, Kernel kernel,
                   Arguments... arguments) {
  kernel<<<blocks, num_threads, static_cast<unsigned>(memory_bytes), stream>>>(arguments...);
}

/// What launch_kernel() gives a block, at a multiple of 16 bytes.
template <class T>
__device__ T* dynamic_shared_memory() {
  extern __shared__ uint4 memory[];
  return reinterpret_cast<T*>(memory);
}

}  // namespace troupe::cuda
