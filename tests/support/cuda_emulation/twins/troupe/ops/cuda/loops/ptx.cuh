#pragma once

// In place of the header of this name: each instruction as the CPU computes it. Where a GPU's results are not
// defined to the bit (mma's sums, ex2.approx), these are only close to them.

#include <bit>
#include <cmath>
#include <limits>

#include "support/cuda_emulation/execution/async_copy.hpp"
#include "support/cuda_emulation/execution/warp_matrix.hpp"
#include "troupe/tensor/half.hpp"

namespace troupe::cuda::ptx {

inline float cvt_f32_f16(std::uint16_t bits) {
  float16 value;
  value.bits = bits;
  return static_cast<float>(value);
}
inline std::uint16_t cvt_rn_bf16_f32(float value) { return bfloat16(value).bits; }
inline std::uint16_t cvt_rn_f16_f32(float value) { return float16(value).bits; }

inline std::uint32_t pair_of(std::uint16_t upper, std::uint16_t lower) {
  return std::uint32_t{upper} << 16 | lower;
}
inline std::uint32_t cvt_rn_bf16x2_f32(float upper, float lower) {
  return pair_of(cvt_rn_bf16_f32(upper), cvt_rn_bf16_f32(lower));
}
inline std::uint32_t cvt_rn_f16x2_f32(float upper, float lower) {
  return pair_of(cvt_rn_f16_f32(upper), cvt_rn_f16_f32(lower));
}

/// Not a number stays one.
inline std::uint32_t cvt_rna_tf32_f32(float value) {
  auto bits = std::bit_cast<std::uint32_t>(value);
  constexpr std::uint32_t dropped = 0x1FFF, half = 0x1000;
  return value != value ? bits | 0x400000 : (bits + half) & ~dropped;
}

inline float ex2_approx_ftz(float value) {
  auto result = std::exp2(value);
  return result < std::numeric_limits<float>::min() ? 0 : result;
}

inline void ldmatrix_x4(std::uint32_t (&words)[4], const void* row,
                        std::source_location site = std::source_location::current()) {
  emulation::load_matrices({"ldmatrix", site}, emulation::matrix_form::as_stored, words, row);
}
inline void ldmatrix_x4_trans(std::uint32_t (&words)[4], const void* row,
                              std::source_location site = std::source_location::current()) {
  emulation::load_matrices({"ldmatrix.trans", site}, emulation::matrix_form::transposed, words, row);
}

inline void mma_m16n8k16_bf16(const std::uint32_t (&left)[4], std::uint32_t right_0, std::uint32_t right_1,
                              float* sums, std::source_location site = std::source_location::current()) {
  emulation::multiply_matrices({"mma", site}, emulation::factor_type::bf16, left, right_0, right_1, sums);
}
inline void mma_m16n8k16_f16(const std::uint32_t (&left)[4], std::uint32_t right_0, std::uint32_t right_1,
                             float* sums, std::source_location site = std::source_location::current()) {
  emulation::multiply_matrices({"mma", site}, emulation::factor_type::f16, left, right_0, right_1, sums);
}

inline void mma_m16n8k8_tf32(const std::uint32_t (&left)[4], std::uint32_t right_0, std::uint32_t right_1,
                             float* sums, std::source_location site = std::source_location::current()) {
  emulation::multiply_matrices({"mma", site}, emulation::factor_type::tf32, left, right_0, right_1, sums);
}

inline void cp_async_16(void* to, const void* from, int source_bytes,
                        std::source_location site = std::source_location::current()) {
  emulation::begin_async_copy({"cp.async", site}, to, from, source_bytes);
}
inline void cp_async_wait_all() { emulation::finish_async_copies(); }

}  // namespace troupe::cuda::ptx
