#include "troupe/ops/convert.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "support/bits.hpp"
#include "support/random_tensor.hpp"

using troupe::dtype;
using troupe::tensor;
using troupe::testing::random_tensor;
using troupe::testing::same_bits;

TEST_CASE("bytes become scaled floats of the same shape") {
  auto x = tensor::from(std::vector<std::uint8_t>{0, 1, 255}, {3, 1});
  CHECK(same_bits(troupe::to_float(x, 0.5F), tensor::from(std::vector<float>{0, 0.5F, 127.5F}, {3, 1})));
  CHECK_THROWS_AS(troupe::to_float(tensor::zeros({3}), 1), std::invalid_argument);
}

TEST_CASE("a cast rounds, truncates and saturates") {
  using troupe::cast;
  auto x = tensor::from(std::vector<float>{-1.75F, 0, 2.5F, 300, 0x1p35F, -0x1p35F, 1e30F, NAN}, {8});
  auto bytes = cast(x, dtype::u8), words = cast(x, dtype::i32), longs = cast(x, dtype::i64);
  CHECK(std::ranges::equal(bytes.values<std::uint8_t>(), std::vector<int>{0, 0, 2, 255, 255, 0, 255, 0}));
  constexpr auto most = std::numeric_limits<std::int32_t>::max(),
                 least = std::numeric_limits<std::int32_t>::min();
  CHECK(std::ranges::equal(words.values<std::int32_t>(), std::vector{-1, 0, 2, 300, most, least, most, 0}));
  CHECK(std::ranges::equal(longs.values<std::int64_t>(),
                           std::vector<std::int64_t>{-1, 0, 2, 300, 34'359'738'368, -34'359'738'368,
                                                     std::numeric_limits<std::int64_t>::max(), 0}));
  CHECK(
      std::ranges::equal(cast(x, dtype::boolean).values<bool>(), std::vector<bool>{1, 0, 1, 1, 1, 1, 1, 1}));
  CHECK(std::ranges::equal(
      cast(tensor::from(std::vector<std::int64_t>{-5, 70'000}, {2}), dtype::u8).values<std::uint8_t>(),
      std::vector<int>{0, 255}));
}

TEST_CASE("a cast to fewer bits and back keeps what fits, for every pair of floating dtypes") {
  auto x = random_tensor({5000}, "x");
  for (auto type : {dtype::bf16, dtype::f16}) {
    auto there = troupe::cast(x, type);
    CHECK(there.type() == type);
    auto back = troupe::cast(there, dtype::f32);
    CHECK(same_bits(troupe::cast(back, type), there));
    for (std::size_t i = 0; i < 5000; ++i)
      REQUIRE(std::abs(back.values<float>()[i] - x.values<float>()[i]) <=
              std::abs(x.values<float>()[i]) / 256);
  }
  CHECK(troupe::cast(x, dtype::f32).bytes().data() == x.bytes().data());
  CHECK_THROWS_AS(troupe::cast(tensor(), dtype::f32), std::invalid_argument);
}
