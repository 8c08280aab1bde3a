#include "troupe/optim/detail/learning_rate.hpp"

#include <catch2/catch_test_macros.hpp>

#include "troupe/optim/adam.hpp"
#include "troupe/optim/lamb.hpp"
#include "troupe/optim/sgd.hpp"

using namespace troupe;

TEST_CASE("the learning rate of each optimizer in a step is known, and of no other") {
  CHECK(optim::detail::learning_rate_of(optim::SGD({.lr = 0.5}))(9) == 0.5);
  CHECK(optim::detail::learning_rate_of(optim::Adam({.lr = 0.25}))(9) == 0.25);
  auto half = [](std::uint64_t step) { return step < 4 ? 1.0 : 0.5; };
  auto scheduled = optim::detail::learning_rate_of(optim::AdamW({.lr = 0.5, .schedule = half}));
  CHECK(scheduled(3) == 0.5);
  CHECK(scheduled(4) == 0.25);
  CHECK(optim::detail::learning_rate_of(optim::LAMB({.lr = 0.125}))(0) == 0.125);
  auto own = [](std::vector<named_parameter>) { return std::unique_ptr<optim::optimizer_state>(); };
  CHECK_FALSE(optim::detail::learning_rate_of(own));
  CHECK_FALSE(optim::detail::learning_rate_of(nullptr));
}
