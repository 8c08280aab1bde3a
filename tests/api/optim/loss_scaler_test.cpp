#include "troupe/optim/loss_scaler.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>
#include <vector>

#include "support/bits.hpp"

using Catch::Matchers::ContainsSubstring;
using troupe::parameter;
using troupe::tensor;
using troupe::optim::loss_scaler;
using troupe::testing::same_bits;

namespace {

parameter with_gradient(float gradient) {
  parameter result("p", tensor::zeros({3}), tensor::full({3}, gradient));
  result.has_gradient = true;
  return result;
}

}  // namespace

TEST_CASE("the loss scale grows after good steps in a row and halves after a bad one") {
  loss_scaler scaler({.growth_interval = 3});
  CHECK(scaler.scale() == 65536);
  for (bool was_finite : {true, true, false, true, true}) scaler.update(was_finite);
  CHECK(scaler.scale() == 32768);
  scaler.update(true);
  CHECK(scaler.scale() == 65536);
  scaler.update(true);
  CHECK(scaler.scale() == 65536);
}

TEST_CASE("the loss scale stays finite") {
  loss_scaler scaler({.initial_scale = 0x1p127, .growth_interval = 1});
  scaler.update(true);
  CHECK(scaler.scale() == 0x1p127);
}

TEST_CASE("unscaling divides by the scale") {
  loss_scaler scaler({.initial_scale = 1024});
  auto a = with_gradient(512), b = with_gradient(-1);
  CHECK(scaler.unscale_and_check(std::vector{&a, &b}));
  CHECK(same_bits(a.gradient(), tensor::full({3}, 0.5F)));
  CHECK(same_bits(b.gradient(), tensor::full({3}, -1.0F / 1024)));
  CHECK(a.has_gradient);
}

TEST_CASE("gradients that overflowed are dropped, all of them") {
  loss_scaler scaler;
  for (auto bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    auto a = with_gradient(1), b = with_gradient(bad);
    CHECK_FALSE(scaler.unscale_and_check(std::vector{&a, &b}));
    CHECK_FALSE(a.has_gradient);
    CHECK_FALSE(b.has_gradient);
  }
}

TEST_CASE("the loss scaler ignores parameters without a gradient") {
  auto a = with_gradient(1), b = with_gradient(std::numeric_limits<float>::infinity());
  b.has_gradient = false;
  CHECK(loss_scaler().unscale_and_check(std::vector{&a, &b}));
}

TEST_CASE("a loss scaler goes on from its saved state") {
  loss_scaler original({.growth_interval = 3}), restored({.growth_interval = 3});
  for (bool was_finite : {false, true, true}) original.update(was_finite);
  auto saved = original.state(), target = restored.state();
  REQUIRE(saved.size() == target.size());
  for (std::size_t i = 0; i < saved.size(); ++i) target[i].value.copy_from(saved[i].value);
  for (auto* each : {&original, &restored}) each->update(true);
  CHECK(restored.scale() == 65536);
  CHECK(same_bits(original.state(), restored.state()));
}

TEST_CASE("options of the loss scaler out of their range are named") {
  CHECK_THROWS_WITH(loss_scaler({.initial_scale = 0}),
                    ContainsSubstring("[loss_scaler] expected initial_scale > 0"));
  CHECK_THROWS_WITH(loss_scaler({.initial_scale = 1e39}), ContainsSubstring("that f32 can hold"));
  CHECK_THROWS_WITH(loss_scaler({.growth_factor = 1}), ContainsSubstring("growth_factor > 1"));
  CHECK_THROWS_WITH(loss_scaler({.backoff_factor = 1}), ContainsSubstring("backoff_factor in (0, 1)"));
  CHECK_THROWS_WITH(loss_scaler({.growth_interval = 0}), ContainsSubstring("growth_interval >= 1"));
  CHECK_THROWS_WITH(loss_scaler({.least_scale = 0}), ContainsSubstring("least_scale > 0"));
}

TEST_CASE("the loss scale is not reduced below the least one, nor to 0 however many steps overflow") {
  loss_scaler scaler;
  for (int step = 0; step < 16; ++step) {
    CHECK_FALSE(scaler.is_least());
    scaler.update(false);
  }
  for (int step = 0; step < 200; ++step) {
    CHECK(scaler.is_least());
    scaler.update(false);
  }
  CHECK(scaler.scale() == 1);
  auto a = with_gradient(0.5F);
  CHECK(scaler.unscale_and_check(std::vector{&a}));
  CHECK(same_bits(a.gradient(), tensor::full({3}, 0.5F)));
}

TEST_CASE("a loss scale that begins below the least one is not raised to it") {
  loss_scaler scaler({.initial_scale = 0.25});
  scaler.update(false);
  CHECK(scaler.scale() == 0.25);
  CHECK(loss_scaler({.initial_scale = 4, .least_scale = 4}).is_least());
}

TEST_CASE("a saved scale of 0, of a version without a least scale, is used as the least one") {
  loss_scaler scaler;
  auto saved = scaler.state();
  saved[0].value = tensor::full({}, 0.0F);
  scaler.load_state(saved);
  CHECK(scaler.scale() == 1);
}
