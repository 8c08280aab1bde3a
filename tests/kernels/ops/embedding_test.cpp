#include "troupe/ops/embedding.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "support/conversions.hpp"
#include "support/devices.hpp"
#include "support/threads.hpp"

using Catch::Matchers::ContainsSubstring;
using troupe::dtype;
using troupe::gradient_mode;
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

/// Many indices repeat and one row is never named.
std::vector<std::int64_t> some_indices(std::int64_t count, std::int64_t num_rows) {
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < count; ++i) indices.push_back((i * i * 7 + i) % (num_rows - 1));
  return indices;
}

}  // namespace

TEST_CASE("an embedding is the row of each index, for indices of either width") {
  auto indices = some_indices(35, 11);
  auto wide = placed(tensor::from(indices, {5, 7}));
  auto narrow = placed(tensor::from(std::vector<std::int32_t>(indices.begin(), indices.end()), {5, 7}));
  for (auto type : floating_types) {
    auto weight = placed(random_tensor({11, 13}, "weight", type));
    auto y = troupe::embedding_forward(weight, wide);
    REQUIRE(y.shape() == troupe::shape{5, 7, 13});
    CHECK(same_bits(y, troupe::embedding_forward(weight, narrow)));
    for (std::int64_t i = 0; i < 35; ++i)
      REQUIRE(
          same_bits(y.reshape({35, 13}).rows(i, 1), weight.rows(indices[static_cast<std::size_t>(i)], 1)));
  }
}

TEST_CASE("an embedding's gradient assigns or adds the sum of the gradients of each index") {
  auto indices = some_indices(77, 9);
  for (auto type : floating_types)
    for (std::int64_t width : {1, 13, 300}) {
      auto dy = placed(random_tensor({7, 11, width}, "dy", type));
      std::vector<exact_sum> expected(static_cast<std::size_t>(9 * width));
      auto terms = values_of(dy);
      for (std::size_t i = 0; i < terms.size(); ++i) {
        auto column = i % static_cast<std::size_t>(width), place = i / static_cast<std::size_t>(width);
        expected[static_cast<std::size_t>(indices[place] * width) + column].add(terms[i]);
      }
      auto gradient = placed(random_tensor({9, width}, "gradient")), assigned = gradient.clone();
      auto places = placed(tensor::from(indices, {7, 11}));
      troupe::embedding_backward_weight(places, dy, assigned, gradient_mode::assign);
      require_close(assigned, expected);
      auto before = values_of(gradient);
      for (std::size_t i = 0; i < before.size(); ++i) expected[i].add(before[i]);
      troupe::embedding_backward_weight(places, dy, gradient);
      require_close(gradient, expected);
    }
}

TEST_CASE("the number of threads changes no bit of an embedding") {
  auto indices = placed(tensor::from(some_indices(3000, 50), {3000}));
  require_same_bits_on_threads([&] {
    auto gradient = placed(tensor::empty({50, 500}));
    troupe::embedding_backward_weight(indices, placed(random_tensor({3000, 500}, "dy")), gradient,
                                      gradient_mode::assign);
    return std::vector{gradient, troupe::embedding_forward(gradient, indices)};
  });
}

TEST_CASE("an index out of range is named with its position, and nothing is written") {
  auto weight = placed(tensor::zeros({4, 2})), gradient = placed(tensor::full({4, 2}, 1));
  auto above = placed(tensor::from(std::vector<std::int64_t>{0, 3, 4}, {3}));
  auto below = placed(tensor::from(std::vector<std::int32_t>{-1}, {}));
  CHECK_THROWS_WITH(troupe::embedding_forward(weight, above),
                    "[embedding] expected indices in [0, 4), got 4 at position 2");
  CHECK_THROWS_WITH(troupe::embedding_forward(weight, below),
                    "[embedding] expected indices in [0, 4), got -1 at position 0");
  CHECK_THROWS_WITH(troupe::embedding_backward_weight(above, placed(tensor::zeros({3, 2})), gradient,
                                                      gradient_mode::assign),
                    "[embedding_backward_weight] expected indices in [0, 4), got 4 at position 2");
  CHECK(same_bits(gradient, tensor::full({4, 2}, 1)));
}

TEST_CASE("an embedding names the argument, what it expected and what it got", "[host]") {
  auto weight = tensor::zeros({4, 2});
  auto indices = tensor::from(std::vector<std::int64_t>{0, 3}, {2});
  CHECK_THROWS_WITH(troupe::embedding_forward({}, indices), ContainsSubstring("weight of f32"));
  CHECK_THROWS_WITH(troupe::embedding_forward(tensor::zeros({4}), indices),
                    ContainsSubstring("2 axes, got f32[4]"));
  CHECK_THROWS_WITH(troupe::embedding_forward(weight, weight),
                    ContainsSubstring("indices of i64 or i32 on cpu:0, got f32[4, 2]"));
  CHECK_THROWS_WITH(troupe::embedding_forward(weight, {}), ContainsSubstring("got undefined"));
  CHECK_THROWS_WITH(troupe::embedding_backward_weight(indices, tensor::zeros({2, 3}), weight),
                    ContainsSubstring("dy f32[2, 2], got f32[2, 3]"));
  CHECK_THROWS_WITH(
      troupe::embedding_backward_weight(indices, tensor::zeros({2, 2}), tensor::zeros({4}, dtype::i32)),
      ContainsSubstring("weight_gradient f32 with 2 axes"));
}
