#include "troupe/ops/rearrange.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <numeric>

#include "support/devices.hpp"
#include "support/random_tensor.hpp"
#include "support/threads.hpp"
#include "troupe/ops/convert.hpp"

using Catch::Matchers::ContainsSubstring;
using troupe::dtype;
using troupe::shape;
using troupe::tensor;
using troupe::testing::placed;
using troupe::testing::random_tensor;
using troupe::testing::same_bits;

namespace {

constexpr dtype all_types[] = {dtype::f32,  dtype::u8,  dtype::i32,    dtype::i64,
                               dtype::bf16, dtype::f16, dtype::boolean};

/// Elements that differ from their neighbours in every dtype but bool.
tensor numbers(const shape& extents, dtype type) {
  auto x = random_tensor(extents, "x");
  for (auto& value : x.values<float>()) value = value * 100 + 100;
  return cast(x, type);
}

/// The definition, element by element.
tensor reference_transpose(const tensor& value, const std::vector<int>& axes) {
  auto x = value.to({});
  std::vector<std::int64_t> extents;
  for (auto axis : axes) extents.push_back(x.shape()[axis]);
  auto y = tensor::empty(shape(extents), x.dtype());
  auto size = troupe::size_bytes(x.dtype());
  for (std::int64_t i = 0; i < y.num_elements(); ++i) {
    std::vector<std::int64_t> index(axes.size());
    auto rest = i;
    for (auto axis = axes.size(); axis-- > 0; rest /= extents[axis])
      index[static_cast<std::size_t>(axes[axis])] = rest % extents[axis];
    std::int64_t from = 0;
    for (std::size_t axis = 0; axis < axes.size(); ++axis)
      from = from * x.shape()[static_cast<int>(axis)] + index[axis];
    std::copy_n(x.bytes().data() + static_cast<std::size_t>(from) * size, size,
                y.bytes().data() + static_cast<std::size_t>(i) * size);
  }
  return y;
}

}  // namespace

TEST_CASE("transpose permutes axes of every dtype, and its inverse undoes it") {
  const std::vector<std::vector<int>> permutations{{0, 1, 2, 3}, {0, 2, 1, 3}, {0, 1, 3, 2}, {3, 2, 1, 0},
                                                   {1, 0, 3, 2}, {2, 3, 0, 1}, {0, 3, 1, 2}, {3, 0, 2, 1}};
  for (auto type : all_types)
    for (const auto& extents : {shape{3, 5, 37, 2}, shape{2, 1, 70, 33}, shape{1, 17, 1, 19}}) {
      auto x = placed(numbers(extents, type));
      for (const auto& axes : permutations) {
        auto y = transpose(x, axes);
        REQUIRE(same_bits(y, reference_transpose(x, axes)));
        REQUIRE(same_bits(transpose(y, troupe::inverse_permutation(axes)), x));
      }
    }
}

TEST_CASE("the last two axes swap in tiles of any size") {
  for (auto type : {dtype::u8, dtype::bf16, dtype::f32, dtype::i64})
    for (const auto& extents : {shape{64, 64}, shape{130, 67}, shape{3, 16, 129}, shape{1, 5}}) {
      auto x = placed(numbers(extents, type));
      std::vector<int> axes(static_cast<std::size_t>(extents.rank()));
      std::iota(axes.begin(), axes.end(), 0);
      std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
      REQUIRE(same_bits(transpose(x), reference_transpose(x, axes)));
    }
  CHECK(transpose(placed(tensor::zeros({0, 3}))).shape() == shape{3, 0});
  CHECK(transpose(placed(tensor::full({}, 3)), {}).shape() == shape{});
}

TEST_CASE("runs that stay together are moved in words of any size, aligned or not") {
  for (auto type : {dtype::u8, dtype::bf16, dtype::f32, dtype::i64})
    for (std::int64_t run : {1, 2, 3, 4, 6, 8, 12, 16, 24, 48})
      for (const auto& extents : {shape{2, 5, 3, run}, shape{1, 35, 66, run}})
        for (std::int64_t offset : {0, 1}) {
          auto values = numbers(extents, type);
          auto size = values.num_elements();
          auto x = placed(tensor::zeros({size + offset}, type)).rows(offset, size).reshape(extents);
          x.copy_from(values);
          CAPTURE(to_string(type), to_string(extents), offset);
          for (const auto& axes : {std::vector{0, 2, 1, 3}, {2, 1, 0, 3}})
            REQUIRE(same_bits(transpose(x, axes), reference_transpose(x, axes)));
        }
}

TEST_CASE("slices along an axis are cut out and concatenated again") {
  for (auto type : all_types) {
    auto x = placed(numbers({4, 6, 5}, type));
    for (int axis : {0, 1, -1}) {
      auto extent = x.shape()[axis];
      const std::vector<std::int64_t> counts{1, 0, extent - 2, 1};
      auto parts = split(x, axis, counts);
      REQUIRE(parts.size() == 4);
      CHECK(parts[2].shape()[axis] == extent - 2);
      CHECK(same_bits(concat(parts, axis), x));
    }
  }
  auto x = placed(tensor::from(std::vector<float>{0, 1, 2, 3, 4, 5}, {2, 3}));
  CHECK(same_bits(slice(x, 1, 1, 2), tensor::from(std::vector<float>{1, 2, 4, 5}, {2, 2})));
  CHECK(same_bits(slice(x, 0, 1, 1), tensor::from(std::vector<float>{3, 4, 5}, {1, 3})));
}

TEST_CASE("the gradient of a slice is zero elsewhere") {
  auto dy = placed(tensor::from(std::vector<float>{1, 2, 3, 4}, {2, 2}));
  CHECK(same_bits(slice_backward(dy, {2, 3}, 1, 1),
                  tensor::from(std::vector<float>{0, 1, 2, 0, 3, 4}, {2, 3})));
  CHECK(same_bits(slice_backward(dy, {4, 2}, 0, 2),
                  tensor::from(std::vector<float>{0, 0, 0, 0, 1, 2, 3, 4}, {4, 2})));
}

TEST_CASE("rearranging gives the same bits on any number of threads") {
  auto x = placed(random_tensor({7, 203, 317}, "x"));
  std::vector both{x, x};
  troupe::testing::require_same_bits_on_threads([&] {
    return std::vector{transpose(x), transpose(x, {1, 0, 2}), concat(both, 1), slice(x, 2, 5, 100)};
  });
}

TEST_CASE("missing axes and ranges are refused", "[host]") {
  auto x = tensor::zeros({2, 3});
  std::vector parts{x, tensor::zeros({2, 4})};
  const std::vector<std::int64_t> counts{1, 1};
  CHECK_THROWS_WITH(slice(x, 2, 0, 1), ContainsSubstring("[slice] expected an axis of [2, 3], got 2"));
  CHECK_THROWS_WITH(slice(x, 1, 2, 2),
                    ContainsSubstring("[slice] expected a range of axis 1 of [2, 3], got [2, 4)"));
  CHECK_THROWS_WITH(slice(x, 1, -1, 2), ContainsSubstring("[-1, 1)"));
  CHECK_THROWS_WITH(troupe::slice({}, 0, 0, 0), ContainsSubstring("undefined"));
  CHECK_THROWS_WITH(concat(parts, 0),
                    ContainsSubstring("[concat] expected parts like f32[2, 3] except for axis 0"));
  CHECK_THROWS_WITH(troupe::concat({}, 0), ContainsSubstring("at least one part"));
  CHECK_THROWS_WITH(split(x, 1, counts), ContainsSubstring("[split] expected counts that add up to axis 1"));
  CHECK_THROWS_WITH(slice_backward(x, {2, 4}, 0, 0),
                    ContainsSubstring("[slice_backward] expected dy like [2, 4]"));
  CHECK_THROWS_WITH(transpose(x, {0, 0}), ContainsSubstring("[transpose] expected each axis once"));
  CHECK_THROWS_WITH(transpose(x, {0}),
                    ContainsSubstring("[transpose] expected all axes of f32[2, 3], got 1"));
  CHECK_THROWS_WITH(transpose(tensor::zeros({3})), ContainsSubstring("at least two axes"));
}
