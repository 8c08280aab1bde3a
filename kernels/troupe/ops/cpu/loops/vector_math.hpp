#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace troupe::cpu {

// The C library's exp, log and tanh choose code by processor. These are plain f32 arithmetic without
// branches: a loop over them becomes vector code, and the bits are the same on every machine and at every
// vector width. Polynomials are fits of least maximum error; errors are given in units in the last place
// (ulp) of the result, against f64. NaN stays NaN.

namespace vector_math {

// ln 2 in two parts; the first has trailing zeros, so that its products with small integers are exact.
constexpr float ln2_high = 0x1.62e4p-1F, ln2_low = 0x1.7f7d1cp-20F, log2_e = 0x1.715476p+0F;
// Adding this leaves an integer, rounded to nearest, in the lowest bits of the sum.
constexpr float rounder = 0x1.8p23F;

/// c[0] + c[1] x + c[2] x^2 + ..., by Estrin's scheme: pairs c[2k] + c[2k+1] x are the coefficients of a
/// polynomial in x^2. Fewer additions wait for each other than by Horner's rule.
template <std::size_t Size>
[[gnu::always_inline]] inline float polynomial(float x, const std::array<float, Size>& c) {
  if constexpr (Size == 1) {
    return c[0];
  } else {
    std::array<float, (Size + 1) / 2> pairs;
#pragma GCC unroll 8
    for (std::size_t k = 0; k < pairs.size(); ++k)
      pairs[k] = 2 * k + 1 < Size ? c[2 * k] + c[2 * k + 1] * x : c[2 * k];
    return polynomial(x * x, pairs);
  }
}

template <class... Coefficients>
[[gnu::always_inline]] inline float polynomial(float x, Coefficients... c) {
  return polynomial(x, std::array<float, sizeof...(c)>{c...});
}

[[gnu::always_inline]] inline float magnitude(float x) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0x7fffffff);
}

/// `x`, which is not negative, with the sign of `sign`.
[[gnu::always_inline]] inline float with_sign(float x, float sign) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) |
                              (std::bit_cast<std::uint32_t>(sign) & 0x80000000));
}

}  // namespace vector_math

/// e^x within 1.5 ulp; 0 where the result would be below 2^-126, infinity above the largest float.
[[gnu::always_inline]] inline float exp_f32(float x) {
  using namespace vector_math;
  // x = n ln2 + r with |r| <= ln2 / 2; n is added to the exponent of e^r.
  auto shifted = x * log2_e + rounder;
  auto whole = shifted - rounder;
  auto r = (x - whole * ln2_high) - whole * ln2_low;
  auto q = polynomial(r, 0x1.fffffcp-2F, 0x1.55549p-3F, 0x1.5558fap-5F, 0x1.123b6ap-7F, 0x1.6a21acp-10F);
  auto mantissa = 1 + (r + r * r * q);
  auto result = std::bit_cast<float>(std::bit_cast<std::uint32_t>(mantissa) +
                                     (std::bit_cast<std::uint32_t>(shifted) << 23));
  result = x <= 0x1.62e42ep+6F ? result : x * __builtin_inff();  // NaN too
  return x < -0x1.5d589ep+6F ? 0 : result;
}

/// The natural logarithm within 1.5 ulp; -infinity of 0, NaN of negative numbers.
[[gnu::always_inline]] inline float log_f32(float x) {
  using namespace vector_math;
  // x = 2^n m with m in [sqrt(1/2), sqrt(2)): subtracting the bits of sqrt(1/2) leaves n in the exponent.
  auto is_small = x < 0x1p-126F;
  auto scaled = is_small ? x * 0x1p23F : x;
  auto bits = std::bit_cast<std::uint32_t>(scaled) - 0x3f3504f3;
  auto n = static_cast<float>(static_cast<std::int32_t>(bits) >> 23) - (is_small ? 23.0F : 0.0F);
  auto f = std::bit_cast<float>((bits & 0x007fffff) + 0x3f3504f3) - 1;
  auto q = polynomial(f, 0x1.555554p-2F, -0x1.000226p-2F, 0x1.99a008p-3F, -0x1.547244p-3F, 0x1.22da1cp-3F,
                      -0x1.0d8542p-3F, 0x1.055b6ap-3F, -0x1.38b58p-4F);
  auto square = f * f;
  auto result = n * ln2_high + (f + (n * ln2_low + (square * f * q - 0.5F * square)));
  constexpr auto infinity = __builtin_inff();
  result = x < infinity ? result : x;  // infinity and NaN are their own logarithms
  result = x > 0 ? result : -infinity;
  return x >= 0 ? result : __builtin_nanf("");
}

/// Within 2 ulp.
[[gnu::always_inline]] inline float tanh_f32(float x) {
  using namespace vector_math;
  auto size = magnitude(x), square = x * x;
  auto q =
      polynomial(square, -0x1.555534p-2F, 0x1.110768p-3F, -0x1.b84448p-5F, 0x1.5256d8p-6F, -0x1.76ac1ap-8F);
  auto near_zero = x + x * square * q;
  auto tail = 1 - 2 / (exp_f32(2 * size) + 1);
  return size < 0.625F ? near_zero : with_sign(tail, x);
}

/// 1 / (1 + e^-x) within 2.5 ulp.
[[gnu::always_inline]] inline float sigmoid_f32(float x) { return 1 / (1 + exp_f32(-x)); }

}  // namespace troupe::cpu
