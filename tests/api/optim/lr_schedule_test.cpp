#include "troupe/optim/lr_schedule.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <stdexcept>

#include "troupe/optim/adam.hpp"
#include "troupe/optim/lamb.hpp"
#include "troupe/optim/sgd.hpp"

namespace optim = troupe::optim;

TEST_CASE("the learning rate warms up in equal parts") {
  auto factor = optim::linear_warmup(4);
  CHECK(factor(0) == 0.25);
  CHECK(factor(2) == 0.75);
  CHECK(factor(3) == 1);
  CHECK(factor(100) == 1);
  CHECK(optim::linear_warmup(0)(0) == 1);
}

TEST_CASE("the learning rate follows half a cosine down and stays there") {
  auto factor = optim::cosine(110, 10, 0.1);
  CHECK(factor(4) == 0.5);
  CHECK(factor(10) == 1);
  CHECK(std::abs(factor(60) - 0.55) < 1e-12);
  CHECK(factor(110) == 0.1);
  CHECK(factor(1'000'000) == 0.1);
  for (std::uint64_t step = 10; step < 110; ++step) CHECK(factor(step) > factor(step + 1));
}

TEST_CASE("the learning rate decays in steps") {
  auto factor = optim::step_decay(3, 0.5);
  CHECK(factor(2) == 1);
  CHECK(factor(3) == 0.5);
  CHECK(factor(8) == 0.25);
}

TEST_CASE("an optimizer steps with the scheduled rate") {
  auto stepped = [](optim::Optimizer optimizer) {
    troupe::parameter p("p", troupe::tensor::full({3}, 1), troupe::tensor::full({3}, 0.5F));
    p.has_gradient = true;
    optimizer({{"p", &p}})->apply(5);
    return p.value().values<float>()[0];
  };
  auto half = [](std::uint64_t step) { return step == 5 ? 0.5 : 1e9; };
  CHECK(stepped(optim::SGD({.lr = 0.25, .schedule = half})) == stepped(optim::SGD({.lr = 0.125})));
  CHECK(stepped(optim::Adam({.lr = 0.25, .schedule = half})) == stepped(optim::Adam({.lr = 0.125})));
  CHECK(stepped(optim::LAMB({.lr = 0.25, .schedule = half})) == stepped(optim::LAMB({.lr = 0.125})));
  CHECK(stepped(optim::AdamW({.lr = 0.25, .schedule = half})) == stepped(optim::AdamW({.lr = 0.125})));
}

TEST_CASE("invalid learning rate schedules are refused") {
  CHECK_THROWS_AS(optim::cosine(10, 10), std::invalid_argument);
  CHECK_THROWS_AS(optim::cosine(10, 0, 1.5), std::invalid_argument);
  CHECK_THROWS_AS(optim::step_decay(0), std::invalid_argument);
  CHECK_THROWS_AS(optim::step_decay(3, 0), std::invalid_argument);
}
