#pragma once

// Defines the language of .cu files for g++, which includes this file before each of them (-include): the
// names that nvcc knows without an include, as far as the project's kernels use them. Blocks are
// one-dimensional.

#include <cuda_runtime_api.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <type_traits>
#include <utility>

#include "support/cuda_emulation/execution/block.hpp"
#include "support/cuda_emulation/execution/launch_limits.hpp"
#include "support/cuda_emulation/execution/warp.hpp"

// The toolkit's headers define them for g++ too, as attributes that it does not know.
#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __launch_bounds__
#define __global__
#define __device__
#define __host__
// One block runs at a time in an OS thread.
#define __shared__ static thread_local
#define __launch_bounds__(...)

#define threadIdx (::troupe::emulation::running->current->index)
#define blockIdx (::troupe::emulation::running->index())
#define blockDim (::troupe::emulation::block_dimensions())
#define gridDim (::troupe::emulation::running->shape().grid)

namespace troupe::emulation {

using where = std::source_location;

inline dim3 block_dimensions() { return dim3(running->shape().num_threads); }

}  // namespace troupe::emulation

inline void __syncthreads(troupe::emulation::where site = troupe::emulation::where::current()) {
  troupe::emulation::running->synchronize({"__syncthreads", site}, false);
}
inline int __syncthreads_or(int value, troupe::emulation::where site = troupe::emulation::where::current()) {
  return troupe::emulation::running->synchronize({"__syncthreads_or", site}, value != 0);
}
inline void __syncwarp(std::uint32_t mask = troupe::emulation::all_lanes,
                       troupe::emulation::where site = troupe::emulation::where::current()) {
  troupe::emulation::exchange_in_warp(mask, {"__syncwarp", site}, nullptr, 0);
}

template <class T>
T __shfl_xor_sync(std::uint32_t mask, T value, int distance,
                  troupe::emulation::where site = troupe::emulation::where::current()) {
  troupe::emulation::call by{"__shfl_xor_sync", site};
  const auto& all = troupe::emulation::exchange_in_warp(mask, by, &value, sizeof(value));
  auto from = troupe::emulation::lane_of_source(
      by, troupe::emulation::lane_index() ^ static_cast<unsigned>(distance));
  std::memcpy(&value, all.values + from * sizeof(value), sizeof(value));
  return value;
}

inline std::uint32_t __ballot_sync(std::uint32_t mask, int predicate,
                                   troupe::emulation::where site = troupe::emulation::where::current()) {
  std::uint8_t vote = predicate != 0;
  const auto& all = troupe::emulation::exchange_in_warp(mask, {"__ballot_sync", site}, &vote, sizeof(vote));
  std::uint32_t result = 0;
  for (unsigned lane = 0; lane < troupe::emulation::num_lanes; ++lane)
    if (troupe::emulation::is_present(lane))
      result |= std::to_integer<std::uint32_t>(all.values[lane]) << lane;
  return result;
}

/// Blocks run one after the other, and a thread gives way only where it waits.
inline unsigned long long atomicMax(unsigned long long* to, unsigned long long value) {
  return std::exchange(*to, *to < value ? value : *to);
}
inline unsigned atomicAdd(unsigned* to, unsigned value) { return std::exchange(*to, *to + value); }

inline int __ffs(int value) { return __builtin_ffs(value); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((std::uint64_t{a} * b) >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  __extension__ using wide = unsigned __int128;
  return static_cast<unsigned long long>((wide{a} * b) >> 64);
}
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }
inline float normcdff(float x) { return static_cast<float>(0.5 * erfc(-x * M_SQRT1_2)); }

template <class A, class B>
constexpr std::common_type_t<A, B> min(A a, B b) {
  return b < a ? b : a;
}
template <class A, class B>
constexpr std::common_type_t<A, B> max(A a, B b) {
  return b > a ? b : a;
}
using std::isfinite;
using std::memcpy;
using std::memset;

/// Supports only the attribute for the largest dynamic shared memory, which limits launches.
template <class... Arguments>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Arguments...), cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaErrorInvalidValue;
  troupe::emulation::allow_shared_memory(reinterpret_cast<const void*>(kernel),
                                         static_cast<std::size_t>(value));
  return cudaSuccess;
}
