#include "troupe/ops/softmax.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>

#include "support/conversions.hpp"
#include "support/devices.hpp"
#include "support/threads.hpp"

using Catch::Matchers::ContainsSubstring;
using troupe::dtype;
using troupe::tensor;
using troupe::testing::floating_types;
using troupe::testing::placed;
using troupe::testing::random_tensor;
using troupe::testing::values_of;

namespace {

using row = std::vector<double>;

/// One of the two functions, and its definition in f64.
struct normaliser {
  tensor (*forward)(const tensor& x);
  tensor (*backward)(const tensor& dy, const tensor& y);
  row (*reference)(row x);
};

double log_sum_exp(const row& x) {
  double sum = 0;
  for (auto value : x) sum += std::exp(value);
  return std::log(sum);
}

row log_softmax(row x) {
  auto shift = log_sum_exp(x);
  for (auto& value : x) value -= shift;
  return x;
}

row softmax(row x) {
  x = log_softmax(std::move(x));
  for (auto& value : x) value = std::exp(value);
  return x;
}

const normaliser both[] = {
    {troupe::softmax_forward, troupe::softmax_backward, softmax},
    {troupe::log_softmax_forward, troupe::log_softmax_backward, log_softmax},
};

row row_of(const row& values, std::size_t at, std::size_t size) {
  auto first = values.begin() + static_cast<std::ptrdiff_t>(at * size);
  return {first, first + static_cast<std::ptrdiff_t>(size)};
}

/// The gradient of sum(dy y) by central differences in f64.
double difference(const normaliser& function, const row& x, const row& dy, std::size_t j) {
  constexpr double delta = 1e-5;
  auto value = [&](double change) {
    auto moved = x;
    moved[j] += change;
    auto y = function.reference(moved);
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += dy[i] * y[i];
    return sum;
  };
  return (value(delta) - value(-delta)) / (2 * delta);
}

void check(const normaliser& function, const tensor& x, const tensor& dy) {
  auto y = function.forward(x), dx = function.backward(dy, y);
  CHECK(y.dtype() == x.dtype());
  auto got = values_of(y), gradient = values_of(dx), from = values_of(x), factors = values_of(dy);
  auto size = static_cast<std::size_t>(x.shape()[-1]);
  auto tolerance = x.dtype() == dtype::f32 ? 1e-6 : 1e-2;
  for (std::size_t i = 0; i < got.size(); ++i) {
    auto x_row = row_of(from, i / size, size), dy_row = row_of(factors, i / size, size);
    auto expected = function.reference(x_row)[i % size];
    CAPTURE(i);
    REQUIRE(std::abs(got[i] - expected) <= tolerance * std::abs(expected) + 1e-9);
    REQUIRE(std::abs(gradient[i] - difference(function, x_row, dy_row, i % size)) <= 3 * tolerance);
  }
}

}  // namespace

TEST_CASE("softmax and log softmax follow their definitions, and their gradients finite differences") {
  for (const auto& each : both)
    for (auto type : floating_types)
      for (const auto& extents : {troupe::shape{3, 2, 37}, troupe::shape{4, 1}, troupe::shape{64}})
        check(each, placed(random_tensor(extents, "x", type, 4)), placed(random_tensor(extents, "dy", type)));
}

TEST_CASE("long rows of softmax sum to one") {
  auto y = values_of(troupe::softmax_forward(placed(random_tensor({50'257}, "x"))));
  double sum = 0;
  for (auto value : y) sum += value;
  CHECK(std::abs(sum - 1) < 1e-6);
}

TEST_CASE("softmax takes huge, masked and undefined scores") {
  constexpr auto infinity = std::numeric_limits<float>::infinity();
  auto x = tensor::from(std::vector<float>{3e38F, -3e38F, 1000, 1000, -infinity, 0}, {3, 2});
  auto y = troupe::softmax_forward(placed(x));
  CHECK(values_of(y) == row{1, 0, 0.5, 0.5, 0, 1});
  auto masked = placed(tensor::full({1, 20}, -infinity));
  for (auto value : values_of(troupe::softmax_forward(masked))) CHECK(std::isnan(value));
  x.values<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(values_of(troupe::softmax_forward(placed(x)))[1]));
}

TEST_CASE("softmax gives the same bits on any number of threads") {
  auto x = placed(random_tensor({317, 203}, "x")), dy = placed(random_tensor({317, 203}, "dy"));
  for (const auto& each : both)
    troupe::testing::require_same_bits_on_threads([&] {
      auto y = each.forward(x);
      return std::vector{y, each.backward(dy, y)};
    });
}

TEST_CASE("softmax refuses arguments of other shapes and dtypes", "[host]") {
  auto x = tensor::zeros({2, 3});
  CHECK_THROWS_WITH(troupe::softmax_forward(tensor::zeros({2, 0})),
                    ContainsSubstring("[softmax] expected x [..., C] with C >= 1, got f32[2, 0]"));
  CHECK_THROWS_WITH(troupe::log_softmax_forward(tensor::zeros({2}, dtype::i64)),
                    ContainsSubstring("[log_softmax] expected x of f32, bf16 or f16"));
  CHECK_THROWS_WITH(troupe::softmax_backward(tensor::zeros({3}), x),
                    ContainsSubstring("[softmax_backward] expected dy f32[2, 3], got f32[3]"));
  CHECK_THROWS_WITH(troupe::log_softmax_backward(x, {}),
                    ContainsSubstring("[log_softmax_backward] expected y of"));
}
