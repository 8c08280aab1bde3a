#pragma once
#include <cstdint>
#include <string>

#include "troupe/error/errors.hpp"
#include "troupe/ops/cuda/launch_kernel.cuh"
#include "troupe/tensor/cuda/cuda_error.hpp"
#include "troupe/tensor/cuda/gpu.hpp"

namespace troupe::cuda {

constexpr unsigned warp_threads = 32;
/// Threads of a block where nothing speaks for another number.
constexpr unsigned block_threads = 256;

/// The most blocks that a grid has along x.
constexpr std::int64_t most_blocks = (std::int64_t{1} << 31) - 1;

/// `count` as a grid's extent along x. Throws std::invalid_argument if a grid cannot have so many blocks.
inline unsigned num_blocks(std::int64_t count) {
  if (count > most_blocks)
    throw_invalid("launch", "tensors for at most 2^31 - 1 blocks of a GPU's kernel (cut them into parts)",
                  std::to_string(count) + " blocks");
  return static_cast<unsigned>(count);
}

/// How many blocks hold `count` threads. Throws as num_blocks().
inline unsigned blocks_for(std::int64_t count, unsigned threads = block_threads) {
  return num_blocks((count + threads - 1) / threads);
}

/// Queues `kernel(arguments...)` on the GPU `where`, unless there are no blocks, with so much
/// dynamic_shared_memory() for each block.
template <class Kernel, class... Arguments>
void launch_with_memory(device where, dim3 blocks, unsigned num_threads, int memory_bytes, Kernel kernel,
                        Arguments... arguments) {
  constexpr int without_asking = 48 << 10;
  if (blocks.x == 0 || blocks.y == 0) return;
  auto& owner = gpu_at(where.index);
  gpu_scope scope(owner.index());
  if (memory_bytes > without_asking)
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, memory_bytes));
  launch_kernel(owner.stream(), blocks, num_threads, memory_bytes, kernel, arguments...);
  check(cudaGetLastError());
}

/// Queues `kernel(arguments...)` on the GPU `where`, unless there are no blocks.
template <class Kernel, class... Arguments>
void launch(device where, dim3 blocks, unsigned num_threads, Kernel kernel, Arguments... arguments) {
  launch_with_memory(where, blocks, num_threads, 0, kernel, arguments...);
}

}  // namespace troupe::cuda
