#pragma once
#include <cstddef>

#include "support/cuda_emulation/execution/block.hpp"

namespace troupe::emulation {

/// The dynamic shared memory that a block may request on every GPU from 8.0 on; the largest of these allow
/// 227 KiB.
constexpr std::size_t largest_shared_memory = 99 << 10;
/// The limit of a kernel without cudaFuncSetAttribute.
constexpr std::size_t unasked_shared_memory = 48 << 10;

/// cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, size_bytes). Thread-safe.
void allow_shared_memory(const void* kernel, std::size_t size_bytes);

/// Fails if a GPU would refuse the launch: too many threads, blocks or bytes, or none.
void check_launch(const launch_shape& shape, const void* kernel);

}  // namespace troupe::emulation
