#pragma once
#include <cstddef>

#include "support/cuda_emulation/execution/block.hpp"

namespace troupe::emulation {

/// What every GPU from 8.0 on gives a block that asks for it; the largest of them give 227 KiB.
constexpr std::size_t largest_shared_memory = 99 << 10;
/// What a kernel gets without cudaFuncSetAttribute.
constexpr std::size_t unasked_shared_memory = 48 << 10;

/// cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, size_bytes). Thread-safe.
void allow_shared_memory(const void* kernel, std::size_t size_bytes);

/// Fails where a GPU refuses the launch: too many threads, blocks or bytes, or none.
void check_launch(const launch_shape& shape, const void* kernel);

}  // namespace troupe::emulation
