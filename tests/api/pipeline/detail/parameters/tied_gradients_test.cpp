#include "troupe/pipeline/detail/parameters/tied_gradients.hpp"

#include <catch2/catch_test_macros.hpp>

#include "support/bits.hpp"

using namespace troupe;
using troupe::testing::same_bits;

namespace {

parameter use_of(float gradient) { return {"weight", tensor::zeros({3}), tensor::full({3}, gradient)}; }

}  // namespace

TEST_CASE("a weight tied within a stage has a gradient only if one of its uses has") {
  auto first = use_of(1), second = use_of(2);
  detail::tied_gradients tied({{{"a", "b"}, {{"a", &first}, {"b", &second}}, false}});
  tied.combine_own();
  CHECK_FALSE(first.has_gradient);
  second.has_gradient = true;
  tied.combine_own();
  CHECK(first.has_gradient);
  CHECK(same_bits(first.gradient(), tensor::full({3}, 2)));
  tied.combine_own();
  CHECK(same_bits(first.gradient(), tensor::full({3}, 4)));
}

TEST_CASE("a weight tied across stages has a gradient in all of them if a use has one in any") {
  auto first = use_of(1), second = use_of(2), third = use_of(4);
  const std::vector<std::string> uses{"a", "b", "c"};
  detail::tied_gradients one({{uses, {{"a", &first}, {"b", &second}}, true}}),
      other({{uses, {{"c", &third}}, true}});
  auto combine = [&] {
    std::vector<tensor> partials{one.partial_gradients(), other.partial_gradients()};
    for (auto* each : {&one, &other}) each->combine(partials);
  };
  combine();
  CHECK_FALSE(first.has_gradient);
  CHECK_FALSE(third.has_gradient);
  second.has_gradient = third.has_gradient = true;
  combine();
  CHECK(first.has_gradient);
  CHECK(third.has_gradient);
  CHECK(same_bits(first.gradient(), tensor::full({3}, 6)));
  CHECK(same_bits(third.gradient(), tensor::full({3}, 6)));
}
