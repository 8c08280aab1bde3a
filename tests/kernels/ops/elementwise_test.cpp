#include "troupe/ops/elementwise.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <functional>
#include <limits>
#include <stdexcept>

#include "support/conversions.hpp"
#include "support/devices.hpp"
#include "support/threads.hpp"

using Catch::Matchers::ContainsSubstring;
using troupe::dtype;
using troupe::shape;
using troupe::tensor;
using troupe::testing::elements_of;
using troupe::testing::exact_sum;
using troupe::testing::floating_types;
using troupe::testing::placed;
using troupe::testing::random_tensor;
using troupe::testing::same_bits;
using troupe::testing::values_of;

namespace {

using function_of_two = std::function<double(double, double)>;

/// Where the element of `extents` that meets `index` of `result` lies: the definition of broadcasting.
std::size_t source_index(std::size_t index, const shape& result, const shape& extents) {
  std::size_t source = 0, step = 1;
  for (int from_end = 1; from_end <= result.rank(); ++from_end) {
    auto extent = static_cast<std::size_t>(result[-from_end]), at = index % extent;
    index /= extent;
    if (from_end > extents.rank()) continue;
    if (extents[-from_end] != 1) source += at * step;
    step *= static_cast<std::size_t>(extents[-from_end]);
  }
  return source;
}

void check(const tensor& got, const shape& result, const tensor& a, const tensor& b,
           const function_of_two& exact) {
  REQUIRE(got.shape() == result);
  auto left = values_of(a), right = values_of(b);
  std::vector<exact_sum> expected;
  for (std::size_t i = 0; i < static_cast<std::size_t>(result.num_elements()); ++i) {
    auto x = left[source_index(i, result, a.shape())], y = right[source_index(i, result, b.shape())];
    expected.push_back({exact(x, y), std::abs(x) + std::abs(y) + std::abs(exact(x, y))});
  }
  require_close(got, expected);
}

struct operation {
  tensor (*of)(const tensor& a, const tensor& b);
  function_of_two exact;
};

std::vector<operation> operations() {
  return {{troupe::add, [](double a, double b) { return a + b; }},
          {troupe::subtract, [](double a, double b) { return a - b; }},
          {troupe::multiply, [](double a, double b) { return a * b; }},
          {troupe::divide, [](double a, double b) { return a / b; }},
          {troupe::minimum, [](double a, double b) { return std::fmin(a, b); }},
          {troupe::maximum, [](double a, double b) { return std::fmax(a, b); }}};
}

struct meeting {
  shape a, b, result;
};

const meeting meetings[] = {
    {{37}, {37}, {37}},
    {{3, 5, 7}, {7}, {3, 5, 7}},
    {{5, 7}, {3, 5, 7}, {3, 5, 7}},
    {{3, 5, 7}, {5, 1}, {3, 5, 7}},
    {{2, 1, 3, 1}, {4, 1, 5}, {2, 4, 3, 5}},
    {shape{}, {2, 3}, {2, 3}},
    {shape{}, shape{}, shape{}},
    {{1}, {1, 1}, {1, 1}},
    {{2, 5001}, {2, 1}, {2, 5001}},
    {{0, 3}, {3}, {0, 3}},
};

tensor floats(const std::vector<float>& values) {
  return tensor::from(values, {static_cast<std::int64_t>(values.size())});
}

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();

}  // namespace

TEST_CASE("operations on two tensors broadcast as NumPy's do, in every floating dtype") {
  for (const auto& each : operations())
    for (const auto& [a, b, result] : meetings)
      for (auto type : floating_types) {
        auto left = placed(random_tensor(a, "a", type)), right = placed(random_tensor(b, "b", type));
        auto got = each.of(left, right);
        CHECK(got.dtype() == type);
        check(got, result, left, right, each.exact);
      }
}

TEST_CASE("operations on two different floating dtypes give f32") {
  auto wide = placed(random_tensor({3, 5}, "a")), half = placed(random_tensor({5}, "b", dtype::bf16));
  auto got = troupe::multiply(wide, half);
  CHECK(got.dtype() == dtype::f32);
  check(got, {3, 5}, wide, half, [](double a, double b) { return a * b; });
  CHECK(troupe::add(half, placed(random_tensor({5}, "c", dtype::f16))).dtype() == dtype::f32);
}

TEST_CASE("integers add, subtract and multiply, wrapping around") {
  auto a = placed(tensor::from(std::vector<std::int64_t>{1, 2, 3}, {3})),
       b = placed(tensor::from(std::vector<std::int64_t>{10}, {1}));
  CHECK(elements_of<std::int64_t>(troupe::add(a, b)) == std::vector<std::int64_t>{11, 12, 13});
  CHECK(elements_of<std::int64_t>(troupe::subtract(a, b)) == std::vector<std::int64_t>{-9, -8, -7});
  CHECK(elements_of<std::int64_t>(troupe::multiply(a, b)) == std::vector<std::int64_t>{10, 20, 30});
  CHECK(elements_of<bool>(troupe::less(a, b)) == std::vector<bool>{true, true, true});
  auto large = placed(tensor::from(std::vector<std::int32_t>{2147483647}, {1}));
  CHECK(elements_of<std::int32_t>(troupe::add(large, large)) == std::vector<std::int32_t>{-2});
  CHECK(elements_of<std::int32_t>(troupe::maximum(large, large)) == std::vector<std::int32_t>{2147483647});
}

TEST_CASE("comparisons give booleans, false with NaN") {
  auto a = placed(floats({1, 2, 3, nan_value})), b = placed(floats({2, 2, 2, nan_value}));
  CHECK(elements_of<bool>(troupe::equal(a, b)) == std::vector<bool>{false, true, false, false});
  CHECK(elements_of<bool>(troupe::less(a, b)) == std::vector<bool>{true, false, false, false});
  CHECK(elements_of<bool>(troupe::greater(a, b)) == std::vector<bool>{false, false, true, false});
  CHECK(elements_of<bool>(troupe::greater(a, placed(tensor::full({}, 1)))) ==
        std::vector<bool>{false, true, true, false});
}

TEST_CASE("the smaller and the larger of NaN and a number is NaN") {
  auto nan = placed(floats({nan_value})), one = placed(floats({1}));
  for (auto* of : {troupe::minimum, troupe::maximum}) {
    CHECK(std::isnan(values_of(of(nan, one))[0]));
    CHECK(std::isnan(values_of(of(one, nan))[0]));
  }
}

TEST_CASE("where selects from one operand or the other, and broadcasts all three") {
  auto a = placed(random_tensor({2, 3}, "a")), b = placed(tensor::full({}, 7));
  auto condition = troupe::greater(placed(floats({1, -1, 1})), placed(tensor::zeros({})));
  auto got = values_of(where(condition, a, b)), from = values_of(a);
  CHECK(got == std::vector<double>{from[0], 7, from[2], from[3], 7, from[5]});
  auto column =
      troupe::greater(placed(tensor::from(std::vector<float>{-1, 1}, {2, 1})), placed(tensor::zeros({})));
  CHECK(values_of(where(column, b, a)) == std::vector<double>{from[0], from[1], from[2], 7, 7, 7});
}

TEST_CASE("functions of one tensor follow their definitions") {
  struct function {
    tensor (*of)(const tensor&);
    double (*exact)(double);
  };
  const function functions[] = {{troupe::exp, [](double x) { return std::exp(x); }},
                                {troupe::log, [](double x) { return std::log(x); }},
                                {troupe::sqrt, [](double x) { return std::sqrt(x); }},
                                {troupe::negate, [](double x) { return -x; }},
                                {troupe::abs, [](double x) { return std::abs(x); }},
                                {troupe::reciprocal, [](double x) { return 1 / x; }}};
  for (const auto& each : functions)
    for (auto type : floating_types) {
      auto x = placed(random_tensor({5, 1003}, "x", type, 3));
      if (each.of == troupe::log || each.of == troupe::sqrt) x = troupe::abs(x);
      std::vector<exact_sum> expected;
      for (auto value : values_of(x)) expected.push_back({each.exact(value), std::abs(each.exact(value))});
      if (type == dtype::f16 && each.of == troupe::reciprocal) continue;  // overflows near 0
      require_close(each.of(x), expected);
    }
}

TEST_CASE("adding, multiplying and clamping with a number works on each element, in every floating dtype") {
  auto check_each = [](const tensor& x, const tensor& got, const std::function<double(double)>& exact) {
    CHECK(got.dtype() == x.dtype());
    std::vector<exact_sum> expected;
    for (auto value : values_of(x)) expected.push_back({exact(value), std::abs(value) + 0.5});
    require_close(got, expected);
  };
  for (auto type : floating_types) {
    auto x = placed(random_tensor({3, 1003}, "x", type));
    check_each(x, troupe::add(x, 0.5F), [](double each) { return each + 0.5; });
    check_each(x, troupe::multiply(x, -0.75F), [](double each) { return each * -0.75; });
    check_each(x, troupe::clamp(x, -0.5F, 0.25F), [](double each) { return std::clamp(each, -0.5, 0.25); });
  }
  CHECK(std::isnan(values_of(troupe::clamp(placed(floats({nan_value})), 0, 1))[0]));
  CHECK_THROWS_WITH(troupe::clamp(floats({1}), 1, nan_value),
                    ContainsSubstring("[clamp] expected low <= high"));
}

TEST_CASE("expanding a tensor to a shape has the bits of broadcast operands") {
  auto x = random_tensor({3, 1}, "x", dtype::bf16);
  x.values<troupe::bfloat16>()[1] = troupe::bfloat16(-0.0F);
  auto got = troupe::broadcast_to(placed(x), {2, 3, 5}).to({});
  REQUIRE(got.shape() == shape{2, 3, 5});
  for (std::size_t i = 0; i < 30; ++i)
    CHECK(got.values<troupe::bfloat16>()[i].bits == x.values<troupe::bfloat16>()[i / 5 % 3].bits);
  auto one = troupe::broadcast_to(placed(tensor::full({1, 1}, 7)), {3, 11}).to({});
  CHECK(same_bits(one, tensor::full({3, 11}, 7)));
  CHECK_THROWS_WITH(troupe::broadcast_to(x, {3}), ContainsSubstring("[broadcast_to]"));
  CHECK_THROWS_WITH(troupe::broadcast_to(x, {2, 1}), ContainsSubstring("[broadcast_to]"));
}

TEST_CASE("a gradient is summed back to the shape before the expansion") {
  auto gradient = placed(random_tensor({2, 4, 3, 5}, "g"));
  auto values = values_of(gradient);
  for (const auto& extents :
       {shape{}, shape{5}, shape{3, 1}, shape{4, 1, 5}, shape{2, 1, 3, 1}, shape{2, 4, 3, 5}}) {
    std::vector<exact_sum> expected(static_cast<std::size_t>(extents.num_elements()));
    for (std::size_t i = 0; i < values.size(); ++i)
      expected[source_index(i, gradient.shape(), extents)].add(values[i]);
    auto got = reduce_to_shape(gradient, extents);
    CHECK(got.shape() == extents);
    require_close(got, expected);
  }
  CHECK_THROWS_WITH(reduce_to_shape(gradient, {2}), ContainsSubstring("[reduce_to_shape]"));
  CHECK_THROWS_WITH(reduce_to_shape(tensor::zeros({1}), {2}),
                    ContainsSubstring("a shape that broadcasts to [1], got [2]"));
}

TEST_CASE("axpy, add and scale work element by element on odd sizes") {
  auto x = placed(random_tensor({37}, "x")), y = placed(random_tensor({37}, "y"));
  auto sum = troupe::add(x, y), scaled = x.clone(), added = y.clone();
  troupe::scale(scaled, 3);
  troupe::axpy(0.5F, x, added);
  for (std::size_t i = 0; i < 37; ++i) {
    auto a = elements_of<float>(x)[i], b = elements_of<float>(y)[i];
    CHECK(elements_of<float>(sum)[i] == a + b);
    CHECK(elements_of<float>(scaled)[i] == a * 3);
    CHECK(elements_of<float>(added)[i] == b + 0.5F * a);
  }
  auto half = placed(tensor::zeros({37}, dtype::bf16));
  troupe::axpy(2, x, half);
  CHECK(std::abs(values_of(half)[5] - 2 * values_of(x)[5]) < 1e-2);
}

TEST_CASE("elementwise operations give the same bits on any number of threads") {
  auto a = placed(random_tensor({517, 203}, "a")), b = placed(random_tensor({203}, "b"));
  troupe::testing::require_same_bits_on_threads([&] {
    return std::vector{troupe::add(a, b),          troupe::divide(a, b),      troupe::exp(a),
                       troupe::less(a, b),         reduce_to_shape(a, {203}), reduce_to_shape(a, {517, 1}),
                       reduce_to_shape(a, shape{})};
  });
}

TEST_CASE("operands that do not fit are refused", "[host]") {
  auto three = tensor::zeros({3}), four = tensor::zeros({4}), bytes = tensor::zeros({3}, dtype::u8);
  CHECK_THROWS_WITH(troupe::add(three, four),
                    ContainsSubstring("[add] expected shapes that broadcast, got [3] and [4]"));
  CHECK_THROWS_WITH(
      troupe::multiply(three, bytes),
      ContainsSubstring("two floating operands, or two of i64 or of i32, got f32[3] and u8[3]"));
  CHECK_THROWS_WITH(troupe::less(three, {}), ContainsSubstring("undefined"));
  CHECK_THROWS_WITH(troupe::divide(tensor::zeros({3}, dtype::i64), three),
                    ContainsSubstring("[divide] expected a of f32"));
  CHECK_THROWS_WITH(where(three, three, three), ContainsSubstring("[where] expected condition of bool"));
  CHECK_THROWS_WITH(troupe::exp(bytes), ContainsSubstring("[exp] expected x of f32, bf16 or f16"));
  CHECK_THROWS_AS(troupe::axpy(1, three, tensor::zeros({3, 1})), std::invalid_argument);
  CHECK_THROWS_AS(troupe::scale({}, 1), std::invalid_argument);
}
