#include "troupe/ops/cpu/product/product_loops.hpp"

#include <catch2/catch_test_macros.hpp>
#include <tuple>
#include <vector>

#include "kernels/ops/cpu/product/wide_product_loops.hpp"
#include "support/bits.hpp"
#include "support/reference.hpp"
#include "troupe/random/fill.hpp"

using troupe::tensor;
using troupe::cpu::block_product_shape;
using troupe::testing::exact_sum;
using troupe::testing::require_close;

namespace {

tensor random_numbers(std::int64_t count, const char* name) {
  auto made = tensor::empty({count});
  troupe::fill_uniform(made, -1, 1, 7, name);
  return made;
}

const float* elements(const tensor& value) { return value.values<float>().data(); }

/// Rows of all three are further apart than they are long.
struct problem {
  block_product_shape of;
  tensor a, b, before;

  problem(std::int64_t rows, std::int64_t columns, std::int64_t inner, bool transposed, bool accumulate)
      : of{.rows = rows,
           .columns = columns,
           .inner = inner,
           .left_stride = (transposed ? rows : inner) + 3,
           .right_stride = columns + 5,
           .stride = columns + 2,
           .left_is_transposed = transposed,
           .accumulate = accumulate},
        a(random_numbers((transposed ? inner : rows) * of.left_stride, "a")),
        b(random_numbers(inner * of.right_stride, "b")),
        before(random_numbers(rows * of.stride, "c")) {}

  std::vector<exact_sum> exact() const {
    std::vector<exact_sum> c;
    for (std::int64_t at = 0; at < before.num_elements(); ++at) {
      auto row = at / of.stride, column = at % of.stride;
      auto is_between_rows = column >= of.columns;
      exact_sum sum;
      if (of.accumulate || is_between_rows) sum.add(elements(before)[at]);
      for (std::int64_t k = 0; k < of.inner && !is_between_rows; ++k)
        sum.add(
            double{elements(a)[of.left_is_transposed ? k * of.left_stride + row : row * of.left_stride + k]} *
            elements(b)[k * of.right_stride + column]);
      c.push_back(sum);
    }
    return c;
  }

  template <class Product>
  tensor by(const Product& product) const {
    auto c = before.clone();
    product(of, elements(a), elements(b), c.values<float>().data());
    return c;
  }
};

template <class Check>
void for_each_problem(const Check& check) {
  for (auto [rows, columns, inner] :
       {std::tuple{1, 1, 1}, {3, 5, 7}, {4, 64, 33}, {16, 128, 64}, {7, 47, 3}, {13, 135, 20}, {30, 29, 1}})
    for (auto transposed : {false, true})
      for (auto accumulate : {false, true}) {
        CAPTURE(rows, columns, inner, transposed, accumulate);
        check(problem(rows, columns, inner, transposed, accumulate));
      }
}

}  // namespace

TEST_CASE("a product of blocks writes its own rows and columns and nothing between them") {
  for_each_problem(
      [](const problem& each) { require_close(each.by(troupe::cpu::block_product), each.exact()); });
}

TEST_CASE("a product of blocks has the same bits on every instruction set") {
  for_each_problem([](const problem& each) {
    auto expected = each.by(troupe::cpu::block_product);
    for (const auto* loops : troupe::testing::all_product_loops())
      CHECK(troupe::testing::same_bits(each.by(loops->multiply_block), expected));
  });
}
