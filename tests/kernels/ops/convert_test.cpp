#include "troupe/ops/convert.hpp"

#include <catch2/catch_test_macros.hpp>
#include <limits>
#include <stdexcept>

#include "support/conversions.hpp"
#include "support/devices.hpp"
#include "support/threads.hpp"

using troupe::dtype;
using troupe::tensor;
using troupe::testing::placed;
using troupe::testing::same_bits;
using troupe::testing::values_of;

namespace {

template <class T>
tensor row_of_values(const std::vector<T>& values) {
  return tensor::from(values, {static_cast<std::int64_t>(values.size())});
}

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr auto max_64 = std::numeric_limits<std::int64_t>::max(),
               min_64 = std::numeric_limits<std::int64_t>::min();
constexpr auto max_32 = std::numeric_limits<std::int32_t>::max(),
               min_32 = std::numeric_limits<std::int32_t>::min();

tensor extremes() {
  return placed(row_of_values<float>(
      {1.9F, -1.9F, 3e9F, -3e9F, 1e30F, -infinity, std::numeric_limits<float>::quiet_NaN()}));
}

}  // namespace

TEST_CASE("floats become integers towards zero, and saturate") {
  auto x = extremes();
  CHECK(same_bits(cast(x, dtype::i64),
                  row_of_values<std::int64_t>({1, -1, 3'000'000'000, -3'000'000'000, max_64, min_64, 0})));
  CHECK(same_bits(cast(x, dtype::i32),
                  row_of_values<std::int32_t>({1, -1, max_32, min_32, max_32, min_32, 0})));
  CHECK(same_bits(cast(x, dtype::u8), row_of_values<std::uint8_t>({1, 0, 255, 0, 255, 0, 0})));
  CHECK(same_bits(
      cast(placed(row_of_values<float>({2147483520.0F, -2147483648.0F, 2147483648.0F})), dtype::i32),
      row_of_values<std::int32_t>({2147483520, min_32, max_32})));
}

TEST_CASE("integers become narrower ones and saturate, and floats to nearest") {
  auto x = placed(row_of_values<std::int64_t>({5, -5, 1LL << 40, -(1LL << 40), 16'777'217}));
  CHECK(same_bits(cast(x, dtype::i32), row_of_values<std::int32_t>({5, -5, max_32, min_32, 16'777'217})));
  CHECK(same_bits(cast(x, dtype::u8), row_of_values<std::uint8_t>({5, 0, 255, 0, 255})));
  CHECK(same_bits(cast(x, dtype::f32), row_of_values<float>({5, -5, 0x1p40F, -0x1p40F, 16'777'216})));
  CHECK(values_of(cast(x, dtype::bf16)) == std::vector<double>{5, -5, 0x1p40, -0x1p40, 16'777'216});
}

TEST_CASE("numbers other than 0 become true, and booleans become 0 and 1") {
  auto flags =
      cast(placed(row_of_values<float>({0, -0.0F, 0.5F, -3, std::numeric_limits<float>::quiet_NaN()})),
           dtype::boolean);
  CHECK(
      same_bits(flags, tensor::from(std::span<const bool>(std::array{false, false, true, true, true}), {5})));
  CHECK(values_of(cast(flags, dtype::f16)) == std::vector<double>{0, 0, 1, 1, 1});
  CHECK(same_bits(cast(flags, dtype::i64), row_of_values<std::int64_t>({0, 0, 1, 1, 1})));
}

TEST_CASE("halves keep their values as floats and round back to themselves") {
  for (auto type : {dtype::bf16, dtype::f16}) {
    auto x = placed(troupe::testing::random_tensor({5003}, "x", type, 100));
    auto wide = cast(x, dtype::f32);
    CHECK(values_of(wide) == values_of(x));
    CHECK(same_bits(cast(wide, type), x));
  }
  auto x = placed(troupe::testing::random_tensor({3, 2}, "x"));
  CHECK(cast(x, dtype::bf16).shape() == troupe::shape{3, 2});
}

TEST_CASE("a tensor that has the dtype already is returned as it is") {
  auto x = placed(tensor::zeros({3}));
  CHECK(cast(x, dtype::f32).bytes().data() == x.bytes().data());
  CHECK_THROWS_AS(cast({}, dtype::f32), std::invalid_argument);
}

TEST_CASE("casts give the same bits on any number of threads") {
  auto x = placed(troupe::testing::random_tensor({300'007}, "x"));
  troupe::testing::require_same_bits_on_threads([&] {
    return std::vector{cast(x, dtype::bf16), cast(x, dtype::i64)};
  });
}

TEST_CASE("bytes become scaled floats of the same shape") {
  auto x = placed(tensor::from(std::vector<std::uint8_t>{0, 1, 255}, {3, 1}));
  CHECK(same_bits(troupe::to_float(x, 0.5F), tensor::from(std::vector<float>{0, 0.5F, 127.5F}, {3, 1})));
  CHECK_THROWS_AS(troupe::to_float(tensor::zeros({3}), 1), std::invalid_argument);
}
