#include "troupe/ops/linear.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <stdexcept>
#include <tuple>

#include "support/bits.hpp"
#include "support/conversions.hpp"
#include "support/devices.hpp"
#include "support/threads.hpp"
#include "troupe/ops/activation.hpp"

using Catch::Matchers::ContainsSubstring;
using troupe::dtype;
using troupe::tensor;
using troupe::testing::exact_sum;
using troupe::testing::floating_types;
using troupe::testing::placed;
using troupe::testing::random_tensor;
using troupe::testing::require_close;
using troupe::testing::require_same_bits_on_threads;
using troupe::testing::same_bits;
using troupe::testing::values_of;

namespace {

struct linear_problem {
  std::int64_t rows, in, out;
  dtype type = dtype::f32;
  tensor x = placed(random_tensor({rows, in}, "x", type)),
         weight = placed(random_tensor({out, in}, "weight", type)),
         bias = placed(random_tensor({out}, "bias", type)),
         dy = placed(random_tensor({rows, out}, "dy", type));
};

tensor as_bf16(const tensor& values) {
  return troupe::testing::rounded_to(values_of(values), values.shape(), dtype::bf16);
}

/// A matrix by the strides of its two indices.
struct strided {
  std::vector<double> values;
  std::int64_t outer, inner;
  double operator()(std::int64_t i, std::int64_t k) const {
    return values[static_cast<std::size_t>(i * outer + k * inner)];
  }
};

/// left right^T
std::vector<exact_sum> product(std::int64_t rows, std::int64_t columns, std::int64_t inner,
                               const strided& left, const strided& right) {
  std::vector<exact_sum> sums;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      auto& sum = sums.emplace_back();
      for (std::int64_t k = 0; k < inner; ++k) sum.add(left(i, k) * right(j, k));
    }
  return sums;
}

void add_each(std::vector<exact_sum>& sums, const std::vector<double>& terms) {
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i].add(terms[i % terms.size()]);
}

const std::vector<std::tuple<int, int, int>> odd_sizes{{1, 1, 1},    {3, 5, 7},      {17, 33, 9},
                                                       {32, 65, 10}, {31, 257, 129}, {70, 13, 2050}};

}  // namespace

TEST_CASE("linear forward is x weight^T + bias, and a fused relu sets negative elements to 0",
          "[by_library]") {
  for (auto type : floating_types)
    for (auto [rows, in, out] : odd_sizes) {
      linear_problem p{rows, in, out, type};
      auto expected = product(rows, out, in, {values_of(p.x), in, 1}, {values_of(p.weight), in, 1});
      require_close(troupe::linear_forward(p.x, p.weight, {}), expected);
      add_each(expected, values_of(p.bias));
      require_close(troupe::linear_forward(p.x, p.weight, p.bias), expected);
      for (auto& each : expected) each.value = std::max(each.value, 0.0);
      require_close(troupe::linear_forward(p.x, p.weight, p.bias, troupe::linear_activation::relu), expected);
    }
}

TEST_CASE("on the CPU a fused relu gives the bits of a separate one", "[host]") {
  for (auto type : floating_types)
    for (auto [rows, in, out] : odd_sizes) {
      linear_problem p{rows, in, out, type};
      for (const auto& bias : {p.bias, tensor()})
        CHECK(same_bits(troupe::linear_forward(p.x, p.weight, bias, troupe::linear_activation::relu),
                        troupe::relu_forward(troupe::linear_forward(p.x, p.weight, bias))));
    }
}

TEST_CASE("linear's input gradient is dy weight", "[by_library]") {
  for (auto type : floating_types)
    for (auto [rows, in, out] : odd_sizes) {
      linear_problem p{rows, in, out, type};
      require_close(troupe::linear_backward_input(p.dy, p.weight),
                    product(rows, in, out, {values_of(p.dy), out, 1}, {values_of(p.weight), 1, in}));
    }
}

TEST_CASE("linear's weight gradients are or add dy^T x and the rows of dy, in f32", "[by_library]") {
  for (auto type : floating_types)
    for (auto [rows, in, out] : odd_sizes) {
      linear_problem p{rows, in, out, type};
      auto dw = placed(random_tensor({out, in}, "dw")), db = placed(random_tensor({out}, "db"));
      auto expected_dw = product(out, in, rows, {values_of(p.dy), 1, out}, {values_of(p.x), 1, in});
      auto expected_db = product(1, out, rows, {std::vector<double>(static_cast<std::size_t>(rows), 1), 0, 1},
                                 {values_of(p.dy), 1, out});
      auto dw_assigned = dw.clone(), db_assigned = db.clone();
      troupe::linear_backward_weight(p.x, p.dy, dw_assigned, db_assigned, troupe::gradient_mode::assign);
      require_close(dw_assigned, expected_dw);
      require_close(db_assigned, expected_db);
      add_each(expected_dw, values_of(dw));
      add_each(expected_db, values_of(db));
      troupe::linear_backward_weight(p.x, p.dy, dw, db);
      require_close(dw, expected_dw);
      require_close(db, expected_db);
    }
}

TEST_CASE("leading axes of linear's operands count as rows", "[by_library]") {
  linear_problem p{12, 5, 7};
  auto x = p.x.reshape({2, 3, 2, 5}), dy = p.dy.reshape({2, 3, 2, 7});
  CHECK(same_bits(troupe::linear_forward(x, p.weight, p.bias),
                  troupe::linear_forward(p.x, p.weight, p.bias).reshape({2, 3, 2, 7})));
  CHECK(same_bits(troupe::linear_backward_input(dy, p.weight),
                  troupe::linear_backward_input(p.dy, p.weight).reshape({2, 3, 2, 5})));
  auto dw = placed(tensor::zeros({7, 5})), flat_dw = placed(tensor::zeros({7, 5}));
  auto db = placed(tensor::zeros({7})), flat_db = placed(tensor::zeros({7}));
  troupe::linear_backward_weight(x, dy, dw, db);
  troupe::linear_backward_weight(p.x, p.dy, flat_dw, flat_db);
  CHECK(same_bits(dw, flat_dw));
  CHECK(same_bits(db, flat_db));
  CHECK(troupe::linear_forward(p.x.rows(0, 1).reshape({5}), p.weight, p.bias).shape() == troupe::shape{7});
}

TEST_CASE("the bias gradient has the same bits from one thread and from three", "[by_library]") {
  auto dy = placed(random_tensor({1001, 300}, "dy")), x = placed(random_tensor({1001, 2}, "x"));
  require_same_bits_on_threads([&] {
    auto dw = placed(tensor::zeros({300, 2})), db = placed(tensor::zeros({300}));
    troupe::linear_backward_weight(x, dy, dw, db);
    return std::vector{db};
  });
}

TEST_CASE("on the CPU the same shapes give the same bits, whatever the alignment of the operands", "[host]") {
  linear_problem p{31, 257, 129};
  // Rows of a larger tensor: another alignment.
  auto larger = placed(tensor::zeros({32, 257}));
  auto view = larger.rows(1, 31);
  view.copy_from(p.x);
  auto dw = placed(tensor::zeros({129, 257})), dw_again = placed(tensor::zeros({129, 257}));
  troupe::linear_backward_weight(p.x, p.dy, dw, {});
  troupe::linear_backward_weight(view, p.dy.clone(), dw_again, {});
  CHECK(same_bits(dw, dw_again));
  CHECK(same_bits(troupe::linear_forward(p.x, p.weight, p.bias),
                  troupe::linear_forward(view, p.weight.clone(), p.bias)));
}

TEST_CASE("an empty batch adds nothing", "[by_library]") {
  auto dw = placed(tensor::full({3, 2}, 5));
  troupe::linear_backward_weight(placed(tensor::empty({0, 2})), placed(tensor::empty({0, 3})), dw, {});
  CHECK(same_bits(dw, tensor::full({3, 2}, 5)));
  CHECK(troupe::linear_forward(placed(tensor::empty({0, 2})), dw, {}).num_elements() == 0);
  auto db = placed(tensor::full({3}, 5));
  troupe::linear_backward_weight(placed(tensor::empty({0, 2})), placed(tensor::empty({0, 3})), dw, db,
                                 troupe::gradient_mode::assign);
  CHECK(same_bits(dw, tensor::zeros({3, 2})));
  CHECK(same_bits(db, tensor::zeros({3})));
}

TEST_CASE("linear names the operation, the argument, what it expected and what it got", "[host]") {
  linear_problem p{4, 3, 2};
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
  CHECK_THROWS_WITH(troupe::linear_forward(as_bf16(p.x), p.weight, {}),
                    ContainsSubstring("x f32[4, 3], got bf16[4, 3]"));
  CHECK_THROWS_WITH(troupe::linear_forward(tensor::zeros({}), p.weight, {}),
                    ContainsSubstring("x with at least one axis"));
  CHECK_THROWS_WITH(troupe::linear_forward(tensor::empty({4, 0}), tensor::empty({2, 0}), {}),
                    ContainsSubstring("weight with at least one column"));
  CHECK_THROWS_WITH(troupe::linear_backward_weight(as_bf16(p.x), as_bf16(p.dy), as_bf16(p.weight), {}),
                    ContainsSubstring("weight_gradient f32[2, 3], got bf16[2, 3]"));
}
