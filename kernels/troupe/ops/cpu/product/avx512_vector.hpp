#pragma once
#include <immintrin.h>

#include <cstdint>

#include "troupe/ops/cpu/product/avx2_vector.hpp"

// Include after a #pragma that permits AVX-512F, AVX2 and FMA.

namespace troupe::cpu {
namespace {

/// 16 floats. As V in the loops' headers.
struct avx512_vector {
  static constexpr int width = 16, max_rows = 14, strip_vectors = 4;
  using eight = avx2_vector;
  using narrower = avx2_vector;
  using single = single_float;
  __m512 lanes;

  [[gnu::always_inline]] static avx512_vector zero() { return {_mm512_setzero_ps()}; }
  [[gnu::always_inline]] static avx512_vector load(const float* from) { return {_mm512_loadu_ps(from)}; }
  [[gnu::always_inline]] static avx512_vector broadcast(const float* from) { return {_mm512_set1_ps(*from)}; }
  [[gnu::always_inline]] static void store(avx512_vector x, float* to) { _mm512_storeu_ps(to, x.lanes); }
  [[gnu::always_inline]] static avx512_vector fused(avx512_vector a, avx512_vector b, avx512_vector sum) {
    return {_mm512_fmadd_ps(a.lanes, b.lanes, sum.lanes)};
  }
  [[gnu::always_inline]] static avx512_vector sum(avx512_vector a, avx512_vector b) {
    return {_mm512_add_ps(a.lanes, b.lanes)};
  }
  [[gnu::always_inline]] static avx512_vector relu(avx512_vector x) {
    return {_mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x.lanes, _mm512_setzero_ps(), _CMP_NLE_UQ), x.lanes)};
  }
  static void transpose(const float* from, std::int64_t step, std::int64_t present, float* to,
                        std::int64_t to_step) {
    avx2_vector::transpose(from, step, present, to, to_step);
  }
};

}  // namespace
}  // namespace troupe::cpu
