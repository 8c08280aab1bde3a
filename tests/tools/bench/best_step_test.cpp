#include "bench/data_parallel/best_step.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <vector>

using namespace troupe::bench;
using Catch::Approx;

TEST_CASE("a step is no shorter than computing, nor than all communication") {
  CHECK(best_step(3, {}) == 3);
  std::vector<timed_parameter> parameters{{.used = 0, .ready = 2.9, .moves = 0.05}};
  CHECK(best_step(3, parameters) == 3);
  parameters[0].moves = 5;
  CHECK(best_step(3, parameters) == Approx(7.9));
}

TEST_CASE("the first layer's gradient, last to be ready, moves before its weights are used again") {
  // Two layers, forward 1 each, backward from 2 on; the second's gradient is ready at 3, the first's at 4.
  std::vector<timed_parameter> layers{{.used = 0, .ready = 4, .moves = 0.5},
                                      {.used = 1, .ready = 3, .moves = 1}};
  CHECK(best_step(4, layers) == Approx(4.5));
  // A link that is the bottleneck stands still only from when the last layer is used until its gradient is
  // there.
  for (auto& each : layers) each.moves *= 100;
  CHECK(best_step(4, layers) == Approx(152));
}
