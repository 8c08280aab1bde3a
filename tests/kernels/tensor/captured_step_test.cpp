#include "troupe/tensor/captured_step.hpp"

#include <catch2/catch_test_macros.hpp>
#include <stdexcept>

#include "support/devices.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/tensor/tensor.hpp"

using troupe::captured_step;
using troupe::device;
using troupe::tensor;

TEST_CASE("on the CPU every run of a captured step calls its function") {
  int calls = 0;
  captured_step step({}, [&calls] { ++calls; });
  CHECK(calls == 0);
  for (int run = 1; run <= 3; ++run) {
    step.run();
    CHECK(calls == run);
    CHECK_FALSE(step.is_captured());
  }
  auto moved = std::move(step);
  moved.run();
  CHECK(calls == 4);
}

TEST_CASE("an exception of a captured step's function is thrown by the run") {
  captured_step step({}, [] { throw std::runtime_error("no"); });
  CHECK_THROWS_AS(step.run(), std::runtime_error);
}

TEST_CASE("a captured step on a missing device is refused") {
  CHECK_THROWS_AS(captured_step({device::kind::cuda, 99}, [] {}), troupe::bad_input);
}
