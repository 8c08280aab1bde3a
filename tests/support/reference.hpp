#pragma once
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdint>
#include <vector>

#include "troupe/tensor/tensor.hpp"

namespace troupe::testing {

/// A sum in f64, and the sum of its terms' absolute values, to which rounding errors are relative.
struct exact_sum {
  double value = 0, absolute = 0;
  void add(double term) {
    value += term;
    absolute += std::abs(term);
  }
};

/// The elements of an f32, bf16 or f16 tensor on any device, in f64.
inline std::vector<double> values_of(const tensor& of) {
  auto here = of.to({});
  std::vector<double> values;
  if (here.dtype() == dtype::f32)
    for (auto value : here.values<float>()) values.push_back(value);
  if (here.dtype() == dtype::bf16)
    for (auto value : here.values<bfloat16>()) values.push_back(static_cast<float>(value));
  if (here.dtype() == dtype::f16)
    for (auto value : here.values<float16>()) values.push_back(static_cast<float>(value));
  return values;
}

/// The elements of a tensor of T on any device.
template <class T>
std::vector<T> elements_of(const tensor& of) {
  auto here = of.to({});
  auto values = here.values<T>();
  return {values.begin(), values.end()};
}

/// The permitted error of a result, relative to the sum of the absolute terms.
inline double tolerance_of(dtype type) {
  return type == dtype::f32 ? 1e-6 : type == dtype::f16 ? 2e-3 : 1e-2;
}

/// Requires |got - expected| <= tolerance * sum of the absolute terms, element by element. An f16 is a
/// multiple of 2^-24, so half of that is permitted in addition.
inline void require_close(const tensor& got, const std::vector<exact_sum>& expected, double tolerance) {
  auto values = values_of(got);
  auto rounding = got.dtype() == dtype::f16 ? 0x1p-25 : 0;
  REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    CAPTURE(i, values[i], expected[i].value, expected[i].absolute);
    REQUIRE(std::abs(values[i] - expected[i].value) <= tolerance * expected[i].absolute + rounding);
  }
}
inline void require_close(const tensor& got, const std::vector<exact_sum>& expected) {
  require_close(got, expected, tolerance_of(got.dtype()));
}

}  // namespace troupe::testing
