#include "troupe/recovery/restart_policy.hpp"

#include <catch2/catch_test_macros.hpp>
#include <optional>
#include <stdexcept>
#include <vector>

using namespace troupe;
using namespace troupe::recovery;
using namespace std::chrono_literals;
using enum restart_policy;
using clock_type = restart_intensity::clock;

namespace {

constexpr clock_type::time_point now{1000s};
constexpr restart_options few{3, 30s, 50ms, 120ms};

/// Delays of failures at these times after `now`; none where the intensity is exceeded.
std::vector<std::optional<clock_type::duration>> delays(const restart_options& options,
                                                        const std::vector<clock_type::duration>& failures) {
  restart_intensity counted(options);
  std::vector<std::optional<clock_type::duration>> made;
  for (auto failure : failures) made.push_back(counted.restart(now + failure));
  return made;
}

}  // namespace

TEST_CASE("each policy restarts its children") {
  CHECK(children_to_restart(one_for_one, 2, 4) == std::vector{2});
  CHECK(children_to_restart(one_for_all, 2, 4) == std::vector{0, 1, 2, 3});
  CHECK(children_to_restart(rest_for_one, 2, 4) == std::vector{2, 3});
  CHECK(children_to_restart(rest_for_one, 0, 4) == std::vector{0, 1, 2, 3});
}

TEST_CASE("a child out of range is refused") {
  CHECK_THROWS_AS(children_to_restart(one_for_one, 4, 4), std::invalid_argument);
  CHECK_THROWS_AS(children_to_restart(one_for_one, -1, 4), std::invalid_argument);
}

TEST_CASE("the first restart has no delay, each further one a longer delay up to the limit") {
  auto options = few;
  options.intensity = 100;
  CHECK(delays(options, {0s, 1s, 2s, 3s, 4s}) ==
        std::vector<std::optional<clock_type::duration>>{0ms, 50ms, 100ms, 120ms, 120ms});
}

TEST_CASE("more than intensity restarts within the period are refused, and a refusal does not count") {
  CHECK(delays(few, {0s, 1s, 2s, 29s, 30s, 30s}) ==
        std::vector<std::optional<clock_type::duration>>{0ms, 50ms, 100ms, {}, 100ms, {}});
  auto never = few;
  never.intensity = 0;
  CHECK_FALSE(restart_intensity(never).restart(now));
}

TEST_CASE("restarts longer ago than the period are forgiven") {
  restart_intensity counted(few);
  for (auto failure : {0s, 1s, 2s}) counted.restart(now + failure);
  CHECK(counted.num_recent(now + 2s) == 3);
  CHECK(counted.num_recent(now + 30s) == 2);
  CHECK(counted.restart(now + 90s) == 0ms);
}

TEST_CASE("long histories and huge delays do not overflow") {
  auto options = few;
  options.intensity = 1000;
  options.backoff = clock_type::duration::max() / 3;
  options.backoff_limit = clock_type::duration::max();
  std::vector<clock_type::duration> many(501, 0s);
  CHECK(delays(options, many).back() == options.backoff_limit);
  options.backoff_limit = 1ns;
  CHECK(delays(options, many).back() == 1ns);
}
