#include "troupe/job/finished_calls.hpp"

#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <limits>

#include "troupe/wire/archive.hpp"

using namespace troupe;

namespace {

call_result example() {
  call_result result;
  result.index = 1;
  result.steps_done = 12;
  result.metrics = {0.1 + 0.2, 64, 17};
  result.weights_sha256 = "abc";
  result.timing.span_s = 1e-9;
  result.kind = call_kind::train;
  result.source = 3;
  return result;
}

}  // namespace

TEST_CASE("results of calls come back from their text bit for bit") {
  CHECK(finished_calls_from_text(finished_calls_text({call_result(), example()})) ==
        std::vector<call_result>{call_result(), example()});
  CHECK(finished_calls_from_text(finished_calls_text({})).empty());
}

TEST_CASE("also those of a loss that has gone to infinity or is no number") {
  for (double loss : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    auto result = example();
    result.metrics.loss_sum = loss;
    auto read = finished_calls_from_text(finished_calls_text({result}));
    CHECK(std::bit_cast<std::uint64_t>(read.at(0).metrics.loss_sum) == std::bit_cast<std::uint64_t>(loss));
  }
}

TEST_CASE("timelines are left out") {
  auto result = example();
  result.last_step.resize(1000);
  CHECK(finished_calls_from_text(finished_calls_text({result})) == std::vector<call_result>{example()});
}

TEST_CASE("a manifest without results has none, other text is refused") {
  CHECK(finished_calls_from_text("").empty());
  CHECK_THROWS_AS(finished_calls_from_text("hello"), decode_error);
  CHECK_THROWS_AS(finished_calls_from_text("00ff"), decode_error);
}
