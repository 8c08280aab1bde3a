#include "troupe/gradients/sparse_gradient.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

using namespace troupe;
using namespace troupe::gradients;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

using floats = std::vector<float>;

tensor list_of(const floats& values) {
  return tensor::from(values, {static_cast<std::int64_t>(values.size())});
}

floats numbers_in(const tensor& list) {
  auto values = list.values<float>();
  return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("a fraction of a gradient is rounded up, and at least one element") {
  CHECK(num_largest(0.01, 1000) == 10);
  CHECK(num_largest(0.01, 1001) == 11);
  CHECK(num_largest(1e-9, 1000) == 1);
  CHECK(num_largest(1, 1000) == 1000);
}

TEST_CASE("the largest elements are sent, and the others wait in the residual until they are large") {
  auto residual = list_of({0, 0, 0, 0, 0});
  auto sent = take_largest(list_of({1, -4, 2, 0, 3}), {residual}, 2);
  CHECK(numbers_in(sum_of_largest({sent}, 5)) == floats{0, -4, 0, 0, 3});
  CHECK(numbers_in(residual) == floats{1, 0, 2, 0, 0});
  sent = take_largest(list_of({1, 1, 1, 1, 1}), {residual}, 2);
  CHECK(numbers_in(sum_of_largest({sent}, 5)) == floats{2, 0, 3, 0, 0});
  CHECK(numbers_in(residual) == floats{0, 1, 0, 1, 1});
}

TEST_CASE("messages of several replicas are added up in their order") {
  auto zeros = [] { return list_of({0, 0}); };
  auto first = take_largest(list_of({1e8F, 1}), {zeros()}, 1),
       second = take_largest(list_of({1, 0}), {zeros()}, 1),
       third = take_largest(list_of({-1e8F, 2}), {zeros()}, 2);
  CHECK(numbers_in(sum_of_largest({first, second, third}, 2)) == floats{0, 2});  // 1e8 + 1 is 1e8
  CHECK(numbers_in(sum_of_largest({first, third, second}, 2)) == floats{1, 2});
  CHECK(numbers_in(sum_of_largest({nothing_largest(), second}, 2)) == floats{1, 0});
}

TEST_CASE("a gradient that is not finite sends NaN and leaves the residual as it was") {
  auto residual = list_of({1, 2, 3});
  auto sent = take_largest(list_of({0, std::numeric_limits<float>::infinity(), 0}), {residual}, 1);
  auto sum = numbers_in(sum_of_largest({sent}, 3));
  CHECK(std::isnan(sum[2]));
  CHECK(numbers_in(residual) == floats{1, 2, 3});
}

TEST_CASE("a weight's gradient is sent in parts, and without a gradient its residual waits") {
  sparse_gradient sent(0.25, {2, 4}, "w");
  gradient_part first{.first = 0, .count = 4}, second{.first = 4, .count = 4};
  auto message = sent.message_of(first, list_of({1, 5, 2, 3}));
  CHECK(numbers_in(sent.sums_from(first, {message, message}).front()) == floats{0, 10, 0, 0});
  CHECK(numbers_in(sum_of_largest({sent.message_of(second, {})}, 4)) == floats{0, 0, 0, 0});
  sent.end_step();
  auto state = sent.state();
  REQUIRE(state.size() == 1);
  CHECK(state[0].name == "top_k.residual/w");
  CHECK(state[0].value.shape() == shape{2, 4});
  CHECK(numbers_in(state[0].value) == floats{1, 0, 2, 3, 0, 0, 0, 0});
}

TEST_CASE("a message of another gradient is refused with what came") {
  auto sent = take_largest(list_of({0, 0, 7}), {list_of({0, 0, 0})}, 1);
  CHECK_THROWS_MATCHES(sum_of_largest({sent}, 2), std::logic_error,
                       MessageMatches(ContainsSubstring("below 2") && ContainsSubstring("index 2")));
}
