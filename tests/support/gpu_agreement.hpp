#pragma once
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <functional>
#include <vector>

#include "support/bits.hpp"
#include "support/conversions.hpp"
#include "support/devices.hpp"

namespace troupe::testing {

/// A computation on a device, from tensors that it makes there.
using computation = std::function<std::vector<tensor>(device where)>;

/// Requires equal shapes, dtypes and integers, and floating numbers equal up to rounding.
inline void require_close_to(const tensor& got, const tensor& expected) {
  REQUIRE(got.dtype() == expected.dtype());
  REQUIRE(got.shape() == expected.shape());
  if (!is_floating(got.dtype())) {
    REQUIRE(same_bits(got, expected));
    return;
  }
  auto tolerance = got.dtype() == dtype::f32 ? 2e-5 : 2e-2;
  auto here = values_of(got), there = values_of(expected);
  for (std::size_t i = 0; i < here.size(); ++i) {
    CAPTURE(i, here[i], there[i]);
    REQUIRE(std::abs(here[i] - there[i]) <= tolerance * (1 + std::abs(there[i])));
  }
}

/// Requires that cuda:0 gives the CPU's results up to rounding, and the same bits every time.
inline void require_agreement(const computation& compute) {
  auto gpu = first_gpu();
  auto expected = compute({}), got = compute(gpu), again = compute(gpu);
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(got[i].device() == gpu);
    require_close_to(got[i], expected[i]);
    REQUIRE(same_bits(got[i], again[i]));
  }
}

/// Requires that cuda:0 gives the CPU's bits.
inline void require_equal_bits(const computation& compute) {
  auto gpu = first_gpu();
  auto expected = compute({}), got = compute(gpu);
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) REQUIRE(same_bits(got[i], expected[i]));
}

}  // namespace troupe::testing
