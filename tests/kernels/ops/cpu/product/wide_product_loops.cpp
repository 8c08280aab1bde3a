#include "kernels/ops/cpu/product/wide_product_loops.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
#include "troupe/ops/cpu/product/avx2_vector.hpp"
#include "troupe/ops/cpu/product/loops_of.hpp"

namespace troupe::cpu {
namespace {

/// 16 floats in two vectors.
struct wide_vector {
  static constexpr int width = 16, max_rows = 14, strip_vectors = 4;
  using eight = avx2_vector;
  using narrower = avx2_vector;
  using single = single_float;
  avx2_vector low, high;

  static wide_vector zero() { return {avx2_vector::zero(), avx2_vector::zero()}; }
  static wide_vector load(const float* from) {
    return {avx2_vector::load(from), avx2_vector::load(from + 8)};
  }
  static wide_vector broadcast(const float* from) {
    return {avx2_vector::broadcast(from), avx2_vector::broadcast(from)};
  }
  static void store(const wide_vector& x, float* to) {
    avx2_vector::store(x.low, to);
    avx2_vector::store(x.high, to + 8);
  }
  static wide_vector fused(const wide_vector& a, const wide_vector& b, const wide_vector& sum) {
    return {avx2_vector::fused(a.low, b.low, sum.low), avx2_vector::fused(a.high, b.high, sum.high)};
  }
  static wide_vector sum(const wide_vector& a, const wide_vector& b) {
    return {avx2_vector::sum(a.low, b.low), avx2_vector::sum(a.high, b.high)};
  }
  static wide_vector relu(const wide_vector& x) {
    return {avx2_vector::relu(x.low), avx2_vector::relu(x.high)};
  }
  static void transpose(const float* from, std::int64_t step, std::int64_t present, float* to,
                        std::int64_t to_step) {
    avx2_vector::transpose(from, step, present, to, to_step);
  }
};

}  // namespace
}  // namespace troupe::cpu

namespace troupe::testing {

const cpu::product_loops& wide_product_loops() { return cpu::loops_of<cpu::wide_vector>; }

}  // namespace troupe::testing
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif

namespace troupe::testing {

std::vector<const cpu::product_loops*> all_product_loops() {
  std::vector<const cpu::product_loops*> found{&cpu::plain_product_loops()};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    found.push_back(&cpu::avx2_product_loops());
    found.push_back(&wide_product_loops());
  }
  if (__builtin_cpu_supports("avx512f")) found.push_back(&cpu::avx512_product_loops());
#endif
  return found;
}

}  // namespace troupe::testing
