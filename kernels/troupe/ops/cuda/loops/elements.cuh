#pragma once
#include <cstdint>

#include "troupe/error/errors.hpp"
#include "troupe/ops/cuda/loops/ptx.cuh"
#include "troupe/tensor/tensor.hpp"

namespace troupe::cuda {

// Element access in kernels: bf16 and f16 are storage types, converted to f32 for arithmetic by single
// instructions. CUDA's headers for 16-bit types are not used, since they take longer to compile than all the
// rest.

__device__ inline float as_float(float value) { return value; }
__device__ inline float as_float(bfloat16 value) {
  return __uint_as_float(static_cast<std::uint32_t>(value.bits) << 16);
}
__device__ inline float as_float(float16 value) { return ptx::cvt_f32_f16(value.bits); }

/// To the nearest T, ties to even.
template <class T>
__device__ T rounded(float value);
template <>
__device__ inline float rounded<float>(float value) {
  return value;
}
template <>
__device__ inline bfloat16 rounded<bfloat16>(float value) {
  bfloat16 result;
  result.bits = ptx::cvt_rn_bf16_f32(value);
  return result;
}
template <>
__device__ inline float16 rounded<float16>(float value) {
  float16 result;
  result.bits = ptx::cvt_rn_f16_f32(value);
  return result;
}

/// A vector of 16 bytes, loaded or stored by one instruction.
template <class T>
struct alignas(16) pack {
  static constexpr int size = 16 / sizeof(T);
  T lanes[size];
};

/// Loads the pack at `from`, a multiple of 16 bytes, with one instruction; without the cast through uint4 the
/// compiler would load single elements.
template <class T>
__device__ pack<T> load_pack(const T* from) {
  auto words = *reinterpret_cast<const uint4*>(from);
  pack<T> result;
  memcpy(&result, &words, sizeof(words));
  return result;
}
template <class T>
__device__ void store_pack(T* to, const pack<T>& from) {
  uint4 words;
  memcpy(&words, &from, sizeof(words));
  *reinterpret_cast<uint4*>(to) = words;
}

template <class T>
T* elements_of(tensor& x) {
  return reinterpret_cast<T*>(x.bytes().data());
}
template <class T>
const T* elements_of(const tensor& x) {
  return reinterpret_cast<const T*>(x.bytes().data());
}

/// Whether the first element is aligned to 16 bytes; false only for some views of larger tensors.
inline bool is_aligned(const tensor& x) {
  return reinterpret_cast<std::uintptr_t>(x.bytes().data()) % 16 == 0;
}

/// Calls `visit` with a value of the C++ type of `type`, which is f32, bf16 or f16.
template <class Visit>
void with_floating(dtype type, const Visit& visit) {
  if (type == dtype::f32) return visit(float{});
  if (type == dtype::bf16) return visit(bfloat16{});
  if (type == dtype::f16) return visit(float16{});
  throw_invalid("with_floating", "f32, bf16 or f16", to_string(type));
}

}  // namespace troupe::cuda
