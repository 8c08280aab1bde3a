#include "troupe/ops/rows.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "support/bits.hpp"
#include "support/conversions.hpp"
#include "support/devices.hpp"

using Catch::Matchers::ContainsSubstring;
using troupe::dtype;
using troupe::tensor;
using troupe::testing::placed;
using troupe::testing::random_tensor;
using troupe::testing::same_bits;

TEST_CASE("rows of any dtype and number of axes are gathered") {
  auto indices = placed(tensor::from(std::vector<std::int64_t>{2, 0, 2, 1}, {2, 2}));
  auto values = placed(random_tensor({3, 5, 7}, "values"));
  auto out = troupe::gather_rows(values, indices);
  REQUIRE(out.shape() == troupe::shape{2, 2, 5, 7});
  auto flat = out.reshape({4, 5, 7});
  for (auto [place, row] : {std::pair{0, 2}, {1, 0}, {2, 2}, {3, 1}})
    CHECK(same_bits(flat.rows(place, 1), values.rows(row, 1)));
  CHECK(same_bits(troupe::gather_rows(placed(tensor::from(std::vector<std::uint8_t>{7, 8, 9}, {3})), indices),
                  tensor::from(std::vector<std::uint8_t>{9, 7, 9, 8}, {2, 2})));
  CHECK(troupe::gather_rows(values, placed(tensor::empty({0}, dtype::i32))).shape() ==
        troupe::shape{0, 5, 7});
}

TEST_CASE("rows are added at their indices, to given rows or to zeros") {
  auto indices = placed(tensor::from(std::vector<std::int32_t>{2, 0, 2}, {3}));
  auto rows = placed(tensor::from(std::vector<float>{1, 2, 3, 4, 5, 6}, {3, 2}));
  auto sum = placed(tensor::full({3, 2}, 1));
  troupe::scatter_add_rows(indices, rows, sum);
  CHECK(same_bits(sum, tensor::from(std::vector<float>{4, 5, 1, 1, 7, 9}, {3, 2})));
  troupe::scatter_add_rows(indices, rows, sum, troupe::gradient_mode::assign);
  CHECK(same_bits(sum, tensor::from(std::vector<float>{3, 4, 0, 0, 6, 8}, {3, 2})));
}

TEST_CASE("scattering gathered rows multiplies each row by the number of its occurrences") {
  auto indices = placed(tensor::from(std::vector<std::int64_t>{1, 1, 3, 1}, {4}));
  auto values = placed(random_tensor({4, 3}, "values", dtype::bf16)), sum = placed(tensor::zeros({4, 3}));
  troupe::scatter_add_rows(indices, troupe::gather_rows(values, indices), sum);
  auto expected = troupe::testing::values_of(values), got = troupe::testing::values_of(sum);
  constexpr double times[] = {0, 3, 0, 1};
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == times[i / 3] * expected[i]);
}

TEST_CASE("row operations name the argument, what they expected and what they got", "[host]") {
  auto values = tensor::zeros({3, 2});
  auto indices = tensor::from(std::vector<std::int64_t>{0, 3}, {2});
  CHECK_THROWS_WITH(troupe::gather_rows(values, indices),
                    "[gather_rows] expected indices in [0, 3), got 3 at position 1");
  CHECK_THROWS_WITH(troupe::gather_rows(tensor::zeros({}), indices),
                    ContainsSubstring("values with at least one"));
  CHECK_THROWS_WITH(troupe::gather_rows(values, values), ContainsSubstring("indices of i64 or i32"));
  CHECK_THROWS_WITH(troupe::scatter_add_rows(indices, tensor::zeros({2, 2}), values),
                    "[scatter_add_rows] expected indices in [0, 3), got 3 at position 1");
  CHECK_THROWS_WITH(troupe::scatter_add_rows(indices, tensor::zeros({2, 3}), values),
                    ContainsSubstring("rows f32[2, 2], got f32[2, 3]"));
  CHECK_THROWS_WITH(
      troupe::scatter_add_rows(indices, tensor::zeros({2, 2}), tensor::zeros({3, 2}, dtype::bf16)),
      ContainsSubstring("sum f32[3, 2], got bf16[3, 2]"));
  CHECK_THROWS_WITH(troupe::scatter_add_rows(indices, tensor::zeros({2, 2}, dtype::u8), values),
                    ContainsSubstring("rows of f32, bf16 or f16"));
}
