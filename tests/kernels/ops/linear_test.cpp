#include "troupe/ops/linear.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <stdexcept>
#include <tuple>

#include "support/bits.hpp"
#include "support/random_tensor.hpp"

using Catch::Matchers::ContainsSubstring;
using troupe::dtype;
using troupe::tensor;
using troupe::testing::random_tensor;
using troupe::testing::same_bits;

namespace {

/// A sum in f64 and what its rounding is measured against.
struct exact_sum {
  double value = 0, absolute = 0;
  void add(double term) {
    value += term;
    absolute += std::abs(term);
  }
  bool matches(float got) const { return std::abs(got - value) <= 1e-6 * absolute; }
};

struct problem {
  std::int64_t rows, in, out;
  tensor x = random_tensor({rows, in}, "x"), weight = random_tensor({out, in}, "weight"),
         bias = random_tensor({out}, "bias"), dy = random_tensor({rows, out}, "dy");
};

double at(const tensor& matrix, std::int64_t row, std::int64_t column) {
  return matrix.values<float>()[static_cast<std::size_t>(row * matrix.extents()[1] + column)];
}
float at(const tensor& vector, std::int64_t index) {
  return vector.values<float>()[static_cast<std::size_t>(index)];
}

const std::vector<std::tuple<int, int, int>> odd_sizes{
    {1, 1, 1}, {3, 5, 7}, {17, 33, 9}, {32, 65, 10}, {31, 257, 129}};

}  // namespace

TEST_CASE("linear forward is x weight^T + bias") {
  for (auto [rows, in, out] : odd_sizes) {
    problem p{rows, in, out};
    auto y = troupe::linear_forward(p.x, p.weight, p.bias);
    auto without = troupe::linear_forward(p.x, p.weight, {});
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < out; ++j) {
        exact_sum sum;
        for (std::int64_t k = 0; k < in; ++k) sum.add(at(p.x, i, k) * at(p.weight, j, k));
        REQUIRE(sum.matches(at(without, i * out + j)));
        sum.add(at(p.bias, j));
        REQUIRE(sum.matches(at(y, i * out + j)));
      }
  }
}

TEST_CASE("linear's input gradient is dy weight") {
  for (auto [rows, in, out] : odd_sizes) {
    problem p{rows, in, out};
    auto dx = troupe::linear_backward_input(p.dy, p.weight);
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t k = 0; k < in; ++k) {
        exact_sum sum;
        for (std::int64_t j = 0; j < out; ++j) sum.add(at(p.dy, i, j) * at(p.weight, j, k));
        REQUIRE(sum.matches(at(dx, i * in + k)));
      }
  }
}

TEST_CASE("linear's weight gradients add dy^T x and the rows of dy") {
  for (auto [rows, in, out] : odd_sizes) {
    problem p{rows, in, out};
    auto dw = random_tensor({out, in}, "dw"), db = random_tensor({out}, "db");
    auto dw_before = dw.clone(), db_before = db.clone();
    troupe::linear_backward_weight(p.x, p.dy, dw, db);
    for (std::int64_t j = 0; j < out; ++j) {
      exact_sum sum;
      sum.add(at(db_before, j));
      for (std::int64_t i = 0; i < rows; ++i) sum.add(at(p.dy, i, j));
      REQUIRE(sum.matches(at(db, j)));
      for (std::int64_t k = 0; k < in; ++k) {
        exact_sum element;
        element.add(at(dw_before, j, k));
        for (std::int64_t i = 0; i < rows; ++i) element.add(at(p.dy, i, j) * at(p.x, i, k));
        REQUIRE(element.matches(at(dw, j * in + k)));
      }
    }
  }
}

TEST_CASE("the same shapes give the same bits, wherever the operands lie") {
  problem p{31, 257, 129};
  // Rows of a larger tensor: another alignment.
  auto larger = tensor::zeros({32, 257});
  auto view = larger.rows(1, 31);
  view.copy_from(p.x);
  auto dw = tensor::zeros({129, 257}), dw_again = tensor::zeros({129, 257});
  troupe::linear_backward_weight(p.x, p.dy, dw, {});
  troupe::linear_backward_weight(view, p.dy.clone(), dw_again, {});
  CHECK(same_bits(dw, dw_again));
  CHECK(same_bits(troupe::linear_forward(p.x, p.weight, p.bias),
                  troupe::linear_forward(view, p.weight.clone(), p.bias)));
}

TEST_CASE("an empty batch adds nothing") {
  auto dw = tensor::full({3, 2}, 5);
  troupe::linear_backward_weight(tensor::empty({0, 2}), tensor::empty({0, 3}), dw, {});
  CHECK(same_bits(dw, tensor::full({3, 2}, 5)));
  CHECK(troupe::linear_forward(tensor::empty({0, 2}), dw, {}).num_elements() == 0);
}

TEST_CASE("linear names the operation, the argument, what it expected and what it got") {
  problem p{4, 3, 2};
  CHECK_THROWS_WITH(troupe::linear_forward(tensor::zeros({4, 5}), p.weight, p.bias),
                    ContainsSubstring("[linear]") && ContainsSubstring("x f32[4, 3], got f32[4, 5]"));
  CHECK_THROWS_AS(troupe::linear_forward(tensor::zeros({4, 3}, dtype::u8), p.weight, p.bias),
                  std::invalid_argument);
  CHECK_THROWS_WITH(troupe::linear_forward(p.x, p.weight, tensor::zeros({3})),
                    ContainsSubstring("bias f32[2]"));
  CHECK_THROWS_WITH(troupe::linear_forward(p.x, {}, {}),
                    ContainsSubstring("weight") && ContainsSubstring("undefined"));
  CHECK_THROWS_WITH(troupe::linear_backward_input(tensor::zeros({4, 3}), p.weight),
                    ContainsSubstring("dy f32[4, 2]"));
  CHECK_THROWS_WITH(troupe::linear_backward_weight(p.x, tensor::zeros({5, 2}), p.weight, {}),
                    ContainsSubstring("dy f32[4, 2]"));
  CHECK_THROWS_WITH(troupe::linear_backward_weight(p.x, p.dy, tensor::zeros({3, 2}), {}),
                    ContainsSubstring("weight_gradient"));
  CHECK_THROWS_WITH(troupe::linear_backward_weight(p.x, p.dy, p.weight, p.weight),
                    ContainsSubstring("bias_gradient"));
}
