#pragma once
#include <immintrin.h>

#include <cstdint>

// Include after a #pragma that permits AVX2 and FMA.

namespace troupe::cpu {
namespace {

/// One float.
struct single_float {
  static constexpr int width = 1;
  float lane;

  [[gnu::always_inline]] static single_float zero() { return {0}; }
  [[gnu::always_inline]] static single_float load(const float* from) { return {*from}; }
  [[gnu::always_inline]] static single_float broadcast(const float* from) { return {*from}; }
  [[gnu::always_inline]] static void store(single_float x, float* to) { *to = x.lane; }
  [[gnu::always_inline]] static single_float fused(single_float a, single_float b, single_float sum) {
    return {_mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(a.lane), _mm_set_ss(b.lane), _mm_set_ss(sum.lane)))};
  }
};

/// 4 floats.
struct four_floats {
  static constexpr int width = 4;
  using narrower = single_float;
  __m128 lanes;

  [[gnu::always_inline]] static four_floats zero() { return {_mm_setzero_ps()}; }
  [[gnu::always_inline]] static four_floats load(const float* from) { return {_mm_loadu_ps(from)}; }
  [[gnu::always_inline]] static four_floats broadcast(const float* from) { return {_mm_broadcast_ss(from)}; }
  [[gnu::always_inline]] static void store(four_floats x, float* to) { _mm_storeu_ps(to, x.lanes); }
  [[gnu::always_inline]] static four_floats fused(four_floats a, four_floats b, four_floats sum) {
    return {_mm_fmadd_ps(a.lanes, b.lanes, sum.lanes)};
  }
};

/// 8 floats. As V in the loops' headers.
struct avx2_vector {
  static constexpr int width = 8, max_rows = 6, strip_vectors = 2;
  using eight = avx2_vector;
  using narrower = four_floats;
  using single = single_float;
  __m256 lanes;

  [[gnu::always_inline]] static avx2_vector zero() { return {_mm256_setzero_ps()}; }
  [[gnu::always_inline]] static avx2_vector load(const float* from) { return {_mm256_loadu_ps(from)}; }
  [[gnu::always_inline]] static avx2_vector broadcast(const float* from) {
    return {_mm256_broadcast_ss(from)};
  }
  [[gnu::always_inline]] static void store(avx2_vector x, float* to) { _mm256_storeu_ps(to, x.lanes); }
  [[gnu::always_inline]] static avx2_vector fused(avx2_vector a, avx2_vector b, avx2_vector sum) {
    return {_mm256_fmadd_ps(a.lanes, b.lanes, sum.lanes)};
  }
  [[gnu::always_inline]] static avx2_vector sum(avx2_vector a, avx2_vector b) {
    return {_mm256_add_ps(a.lanes, b.lanes)};
  }
  [[gnu::always_inline]] static avx2_vector relu(avx2_vector x) {
    return {_mm256_andnot_ps(_mm256_cmp_ps(x.lanes, _mm256_setzero_ps(), _CMP_LE_OQ), x.lanes)};
  }

  /// to[k][lane] = lane[k], 8 of each.
  [[gnu::always_inline]] static void transpose_registers(const __m256 (&lane)[8], avx2_vector* to) {
    __m256 pairs[8], fours[8];
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
      pairs[i] = _mm256_unpacklo_ps(lane[i], lane[i + 1]);
      pairs[i + 1] = _mm256_unpackhi_ps(lane[i], lane[i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4)
#pragma GCC unroll 2
      for (int part = 0; part < 2; ++part) {
        fours[i + 2 * part] = _mm256_shuffle_ps(pairs[i + part], pairs[i + 2 + part], 0x44);
        fours[i + 2 * part + 1] = _mm256_shuffle_ps(pairs[i + part], pairs[i + 2 + part], 0xee);
      }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      to[i].lanes = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x20);
      to[i + 4].lanes = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x31);
    }
  }
  [[gnu::always_inline]] static void load_transposed(const float* from, std::int64_t step, avx2_vector* to) {
    __m256 lane[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) lane[i] = _mm256_loadu_ps(from + i * step);
    transpose_registers(lane, to);
  }
  static void transpose(const float* from, std::int64_t step, std::int64_t present, float* to,
                        std::int64_t to_step) {
    __m256 lane[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i)
      lane[i] = i < present ? _mm256_loadu_ps(from + i * step) : _mm256_setzero_ps();
    avx2_vector columns[8];
    transpose_registers(lane, columns);
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) store(columns[k], to + k * to_step);
  }
};

}  // namespace
}  // namespace troupe::cpu
