#include "troupe/ops/matmul.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <tuple>

#include "support/bits.hpp"
#include "support/conversions.hpp"
#include "support/devices.hpp"
#include "troupe/ops/kernels/all.hpp"
#include "troupe/ops/matmul_precision.hpp"

using Catch::Matchers::ContainsSubstring;
using troupe::dtype;
using troupe::gradient_mode;
using troupe::matmul_options;
using troupe::tensor;
using troupe::testing::exact_sum;
using troupe::testing::floating_types;
using troupe::testing::placed;
using troupe::testing::random_tensor;
using troupe::testing::require_close;
using troupe::testing::same_bits;
using troupe::testing::values_of;

namespace {

struct product_problem {
  std::int64_t batch, rows, inner, columns;
  dtype type;
  matmul_options options;
  bool right_is_shared = false;

  tensor a() const {
    auto extents =
        options.transpose_a ? troupe::shape{batch, inner, rows} : troupe::shape{batch, rows, inner};
    return placed(random_tensor(extents, "a", type));
  }
  tensor b() const {
    auto height = options.transpose_b ? columns : inner, width = options.transpose_b ? inner : columns;
    auto extents = right_is_shared ? troupe::shape{height, width} : troupe::shape{batch, height, width};
    return placed(random_tensor(extents, "b", type));
  }

  std::vector<exact_sum> reference() const {
    auto left = values_of(a()), right = values_of(b());
    auto a_at = [&](std::int64_t pair, std::int64_t i, std::int64_t k) {
      auto place = options.transpose_a ? k * rows + i : i * inner + k;
      return left[static_cast<std::size_t>(pair * rows * inner + place)];
    };
    auto b_at = [&](std::int64_t pair, std::int64_t k, std::int64_t j) {
      auto place = options.transpose_b ? j * inner + k : k * columns + j;
      return right[static_cast<std::size_t>((right_is_shared ? 0 : pair * inner * columns) + place)];
    };
    std::vector<exact_sum> sums;
    for (std::int64_t pair = 0; pair < batch; ++pair)
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j) {
          auto& sum = sums.emplace_back();
          for (std::int64_t k = 0; k < inner; ++k) sum.add(a_at(pair, i, k) * b_at(pair, k, j));
        }
    return sums;
  }
};

template <class Check>
void for_each_problem(const Check& check) {
  for (auto type : floating_types)
    for (auto [batch, rows, inner, columns] :
         {std::tuple{1, 1, 1, 1}, {3, 5, 7, 9}, {2, 33, 17, 65}, {4, 1, 40, 3}})
      for (auto transpose_a : {false, true})
        for (auto transpose_b : {false, true})
          for (auto right_is_shared : {false, true})
            check(product_problem{
                batch, rows, inner, columns, type, {transpose_a, transpose_b}, right_is_shared});
}

}  // namespace

TEST_CASE("matmul multiplies each pair of matrices, transposed or not", "[by_library]") {
  for_each_problem([](const product_problem& p) {
    CAPTURE(p.batch, p.rows, p.options.transpose_a, p.options.transpose_b, p.right_is_shared);
    auto c = troupe::matmul(p.a(), p.b(), p.options);
    CHECK(c.dtype() == p.type);
    CHECK(c.shape() == troupe::shape{p.batch, p.rows, p.columns});
    require_close(c, p.reference());
  });
}

TEST_CASE("matmul_into assigns or adds to a product of the same dtype or f32", "[by_library]") {
  for_each_problem([](const product_problem& p) {
    for (auto type : {p.type, dtype::f32}) {
      auto c = placed(random_tensor({p.batch, p.rows, p.columns}, "c", type));
      auto expected = p.reference();
      auto assigned = c.clone();
      troupe::matmul_into(p.a(), p.b(), assigned, gradient_mode::assign, p.options);
      require_close(assigned, expected);
      auto before = values_of(c);
      for (std::size_t i = 0; i < before.size(); ++i) expected[i].add(before[i]);
      troupe::matmul_into(p.a(), p.b(), c, gradient_mode::accumulate, p.options);
      require_close(c, expected);
    }
  });
}

TEST_CASE("matmul takes plain matrices and several leading axes", "[by_library]") {
  auto a = placed(random_tensor({6, 4, 5}, "a")), b = placed(random_tensor({6, 5, 3}, "b"));
  CHECK(same_bits(troupe::matmul(a.reshape({2, 3, 4, 5}), b.reshape({2, 3, 5, 3})),
                  troupe::matmul(a, b).reshape({2, 3, 4, 3})));
  auto plain = troupe::matmul(a.rows(0, 1).reshape({4, 5}), b.rows(0, 1).reshape({5, 3}));
  CHECK(same_bits(plain, troupe::matmul(a.rows(0, 1), b.rows(0, 1)).reshape({4, 3})));
}

TEST_CASE("an empty inner axis of matmul gives zeros and adds nothing", "[by_library]") {
  auto c = troupe::matmul(placed(tensor::empty({2, 0})), placed(tensor::empty({0, 3})));
  CHECK(same_bits(c, tensor::zeros({2, 3})));
  auto ones = placed(tensor::full({2, 3}, 1));
  troupe::matmul_into(placed(tensor::empty({2, 0})), placed(tensor::empty({0, 3})), ones,
                      gradient_mode::accumulate);
  CHECK(same_bits(ones, tensor::full({2, 3}, 1)));
}

TEST_CASE("a product along an empty inner axis is its bias, after relu if that is fused", "[by_library]") {
  for (auto type : floating_types)
    for (auto c_type : {type, dtype::f32})
      for (auto relu : {false, true})
        for (auto accumulate : {false, true}) {
          auto bias = placed(random_tensor({3}, "bias", type)),
               c = placed(random_tensor({2, 3}, "c", c_type));
          std::vector<exact_sum> expected(6);
          for (std::size_t i = 0; i < expected.size(); ++i) {
            if (accumulate) expected[i].add(values_of(c)[i]);
            expected[i].add(values_of(bias)[i % 3]);
            if (relu) expected[i].value = std::max(expected[i].value, 0.0);
          }
          troupe::kernels_on(c.device())
              .products.matrix_product({.rows = 2, .columns = 3, .accumulate = accumulate, .relu = relu},
                                       placed(tensor::empty({2, 0}, type)),
                                       placed(tensor::empty({0, 3}, type)), bias, c);
          require_close(c, expected);
        }
}

TEST_CASE("matmul names the argument, what it expected and what it got", "[host]") {
  auto a = tensor::zeros({2, 4, 5}), b = tensor::zeros({2, 5, 3});
  CHECK_THROWS_WITH(troupe::matmul(tensor::zeros({5}), b), ContainsSubstring("a with at least two axes"));
  CHECK_THROWS_WITH(troupe::matmul({}, b), ContainsSubstring("[matmul]") && ContainsSubstring("undefined"));
  CHECK_THROWS_WITH(troupe::matmul(a, tensor::zeros({3, 5, 3})),
                    ContainsSubstring("b f32[2, 5, 3], got f32[3, 5, 3]"));
  CHECK_THROWS_WITH(troupe::matmul(a, tensor::zeros({4, 3})),
                    ContainsSubstring("b f32[5, 3], got f32[4, 3]"));
  CHECK_THROWS_WITH(troupe::matmul(a, b, {.transpose_b = true}),
                    ContainsSubstring("b f32[2, 5, 5], got f32[2, 5, 3]"));
  CHECK_THROWS_WITH(troupe::matmul(a, tensor::zeros({2, 5, 3}, dtype::bf16)),
                    ContainsSubstring("b f32[2, 5, 3], got bf16[2, 5, 3]"));
  CHECK_THROWS_WITH(troupe::matmul_into(a, b, tensor::zeros({2, 4, 4}), gradient_mode::assign),
                    ContainsSubstring("c f32[2, 4, 3], got f32[2, 4, 4]"));
  CHECK_THROWS_WITH(troupe::matmul_into(a, b, {}, gradient_mode::assign),
                    ContainsSubstring("c f32[2, 4, 3]"));
}

TEST_CASE("TF32 rounds the operands of f32 products on a GPU, and nothing on the CPU") {
  product_problem of{1, 65, 200, 48, dtype::f32, {}};
  auto a = of.a(), b = of.b();
  auto exact = matmul(a, b);
  troupe::set_matmul_precision(troupe::matmul_precision::tf32);
  auto rounded = matmul(a, b);
  troupe::set_matmul_precision(troupe::matmul_precision::f32);
  CHECK(same_bits(matmul(a, b), exact));
  CHECK(same_bits(rounded, exact) == (a.device().type == troupe::device::kind::cpu));
  auto got = values_of(rounded), expected = values_of(exact);
  // Each operand is wrong by at most 2^-11 of itself, and operands are at most 1.
  for (std::size_t i = 0; i < got.size(); ++i) REQUIRE(std::abs(got[i] - expected[i]) <= 200 * 0x1p-10);
}
