#pragma once
#include <cstdint>
#include <string>

#include "troupe/error/errors.hpp"
#include "troupe/ops/cuda/loops/launch_kernel.cuh"
#include "troupe/tensor/cuda/cuda_error.hpp"
#include "troupe/tensor/cuda/gpu.hpp"

namespace troupe::cuda {

constexpr unsigned warp_threads = 32;
/// The default number of threads per block.
constexpr unsigned block_threads = 256;

/// The maximum number of blocks along x.
constexpr std::int64_t max_blocks = (std::int64_t{1} << 31) - 1;

/// `count` as a grid's extent along x. Throws std::invalid_argument if a grid cannot have so many blocks.
inline unsigned num_blocks(std::int64_t count) {
  if (count > max_blocks)
    throw_invalid("launch", "tensors for at most 2^31 - 1 blocks of a GPU's kernel (cut them into parts)",
                  std::to_string(count) + " blocks");
  return static_cast<unsigned>(count);
}

/// The number of blocks for `count` threads. Throws as num_blocks().
inline unsigned blocks_for(std::int64_t count, unsigned threads = block_threads) {
  return num_blocks((count + threads - 1) / threads);
}

/// Launches `kernel(arguments...)` on GPU `target` with `memory_bytes` of dynamic_shared_memory() per block;
/// does nothing for an empty grid.
template <class Kernel, class... Arguments>
void launch_with_memory(device target, dim3 blocks, unsigned num_threads, int memory_bytes, Kernel kernel,
                        Arguments... arguments) {
  constexpr int default_limit_bytes = 48 << 10;
  if (blocks.x == 0 || blocks.y == 0) return;
  auto& owner = gpu_at(target.index);
  gpu_scope scope(owner.index());
  if (memory_bytes > default_limit_bytes)
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, memory_bytes));
  launch_kernel(owner.stream(), blocks, num_threads, memory_bytes, kernel, arguments...);
  check(cudaGetLastError());
}

/// Launches `kernel(arguments...)` on GPU `target`; does nothing for an empty grid.
template <class Kernel, class... Arguments>
void launch(device target, dim3 blocks, unsigned num_threads, Kernel kernel, Arguments... arguments) {
  launch_with_memory(target, blocks, num_threads, 0, kernel, arguments...);
}

}  // namespace troupe::cuda
