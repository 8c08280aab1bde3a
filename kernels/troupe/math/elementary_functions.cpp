#include "troupe/math/elementary_functions.hpp"

#include <bit>
#include <cstdint>
#include <numbers>

namespace troupe {
namespace {

// ln 2 in two parts; the first has trailing zeros, so that its products with small integers are exact.
constexpr double ln2_high = 0x1.62e42feep-1;
constexpr double ln2_low = 0x1.a39ef35793c76p-33;
constexpr double log2_e = 0x1.71547652b82fep+0;
// Adding this constant rounds to the nearest integer, which is then in the lowest bits of the sum.
constexpr double rounder = 0x1.8p52;
constexpr std::int64_t exponent_bias = 1023;
constexpr int mantissa_bits = 52;

double power_of_two(std::int64_t exponent) {
  return std::bit_cast<double>((exponent + exponent_bias) << mantissa_bits);
}

}  // namespace

// x = n ln2 + r with |r| <= ln2 / 2, and e^r by its Taylor series, whose 14th term is below 2^-60.
double exponential(double x) {
  if (!(x >= -708)) return x < -708 ? 0 : x;
  auto n = (x * log2_e + rounder) - rounder;
  auto r = (x - n * ln2_high) - n * ln2_low;
  double sum = 1;
  for (int term = 13; term >= 1; --term) sum = 1 + sum * r / term;
  return sum * power_of_two(static_cast<std::int64_t>(n));
}

// x = 2^n m with m in [sqrt(1/2), sqrt(2)), and log m = 2 atanh(s) = 2 (s + s^3/3 + s^5/5 + ...), s =
// (m-1)/(m+1).
double logarithm(double x) {
  constexpr double sqrt_half = 0x1.6a09e667f3bcdp-1;
  auto bits = std::bit_cast<std::int64_t>(x);
  auto n = (bits >> mantissa_bits) - exponent_bias + 1;
  auto m = x * power_of_two(-n / 2) * power_of_two(-n - -n / 2);
  if (m < sqrt_half) {
    m *= 2;
    --n;
  }
  auto s = (m - 1) / (m + 1), square = s * s;
  double sum = 0;
  for (int power = 23; power >= 1; power -= 2) sum = sum * square + 1.0 / power;
  auto exponent = static_cast<double>(n);
  return exponent * ln2_high + (exponent * ln2_low + 2 * s * sum);
}

// cos(pi t) = -cos(pi (1 - t)), and in [0, pi/2] the Taylor series, whose term of x^24 is below 1e-19.
double cosine_of_pi_times(double t) {
  if (t > 0.5) return -cosine_of_pi_times(1 - t);
  auto x = std::numbers::pi * t, square = x * x;
  double sum = 1;
  for (int power = 22; power >= 2; power -= 2) sum = 1 - sum * square / (power * (power - 1));
  return sum;
}

}  // namespace troupe
