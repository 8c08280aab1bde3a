#pragma once

// The CUDA syntax of a launch; the rest is in launch.cuh. Tests replace this file by an emulation on the CPU
// (tests/support/cuda_emulation).

namespace troupe::cuda {

/// Launches `kernel(arguments...)` in `stream` with `memory_bytes` of dynamic_shared_memory() per block.
/// cudaGetLastError() returns launch errors.
template <class Kernel, class... Arguments>
void launch_kernel(cudaStream_t stream, dim3 blocks, unsigned num_threads, int memory_bytes, Kernel kernel,
                   Arguments... arguments) {
  kernel<<<blocks, num_threads, static_cast<unsigned>(memory_bytes), stream>>>(arguments...);
}

/// The dynamic shared memory of a block, aligned to 16 bytes.
template <class T>
__device__ T* dynamic_shared_memory() {
  extern __shared__ uint4 memory[];
  return reinterpret_cast<T*>(memory);
}

}  // namespace troupe::cuda
