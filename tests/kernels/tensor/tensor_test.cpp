#include "troupe/tensor/tensor.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <cstdint>
#include <stdexcept>

using troupe::tensor;

TEST_CASE("handles share elements, clones do not") {
  auto first = tensor::from(std::vector<float>{1, 2, 3, 4, 5, 6}, {3, 2});
  auto shared = first;
  auto copy = first.clone();
  first.values<float>()[0] = 9;
  CHECK(shared.values<float>()[0] == 9);
  CHECK(copy.values<float>()[0] == 1);
}

TEST_CASE("rows and reshape are views of the same elements") {
  auto whole = tensor::from(std::vector<float>{1, 2, 3, 4, 5, 6}, {3, 2});
  auto last = whole.rows(2, 1);
  CHECK(troupe::describe(last) == "f32[1, 2]");
  last.values<float>()[1] = 60;
  CHECK(whole.reshape({6}).values<float>()[5] == 60);
  CHECK_THROWS_AS(whole.rows(2, 2), std::invalid_argument);
  CHECK_THROWS_AS(whole.reshape({5}), std::invalid_argument);
}

TEST_CASE("a view keeps the storage alive") {
  tensor view;
  {
    auto whole = tensor::full({8, 4}, 3);
    view = whole.rows(7, 1);
  }
  CHECK(view.values<float>()[3] == 3);
}

TEST_CASE("elements are 64-byte aligned and read only as their own type") {
  auto numbers = tensor::empty({5}, troupe::dtype::i64);
  CHECK(reinterpret_cast<std::uintptr_t>(numbers.bytes().data()) % 64 == 0);
  CHECK(numbers.size_bytes() == 40);
  CHECK_THROWS_AS(numbers.values<float>(), std::invalid_argument);
  CHECK_THROWS_AS(tensor().values<float>(), std::invalid_argument);
  CHECK_THROWS_AS(tensor::from(std::vector<float>{1, 2}, {3}), std::invalid_argument);
}

TEST_CASE("copy_from wants the same shape and dtype") {
  auto target = tensor::zeros({2, 2});
  target.copy_from(tensor::full({2, 2}, 4));
  CHECK(target.values<float>()[3] == 4);
  CHECK_THROWS_AS(target.copy_from(tensor::full({4}, 4)), std::invalid_argument);
}
