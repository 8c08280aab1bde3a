#include "troupe/recovery/restart_policy.hpp"

#include <catch2/catch_test_macros.hpp>
#include <stdexcept>

using namespace troupe;
using namespace std::chrono_literals;
using enum restart_policy;
using times = std::vector<std::chrono::steady_clock::time_point>;

namespace {

constexpr std::chrono::steady_clock::time_point now{1000s};

restart_options options_of(restart_policy policy) { return {policy, 3, 30s, 50ms, 120ms}; }

}  // namespace

TEST_CASE("each policy restarts its children") {
  auto children = [](restart_policy policy, int child) {
    return decide_restart(options_of(policy), child, 4, {}, now).children;
  };
  CHECK(children(one_for_one, 2) == std::vector{2});
  CHECK(children(one_for_all, 2) == std::vector{0, 1, 2, 3});
  CHECK(children(rest_for_one, 2) == std::vector{2, 3});
  CHECK(children(rest_for_one, 0) == std::vector{0, 1, 2, 3});
}

TEST_CASE("the first restart has no delay, each further one a longer delay up to the limit") {
  auto options = options_of(one_for_one);
  options.intensity = 100;
  times earlier;
  for (auto delay : {0ms, 50ms, 100ms, 120ms, 120ms}) {
    CHECK(decide_restart(options, 0, 1, earlier, now) == restart_decision{false, {0}, delay});
    earlier.push_back(now - 1s);
  }
}

TEST_CASE("more than intensity restarts within the period escalate") {
  times earlier = {now - 1s, now - 29s};
  auto options = options_of(one_for_one);
  CHECK_FALSE(decide_restart(options, 0, 1, earlier, now).escalate);
  earlier.push_back(now - 10s);
  auto decision = decide_restart(options, 0, 1, earlier, now);
  CHECK(decision.escalate);
  CHECK(decision.children.empty());
  options.intensity = 0;
  CHECK(decide_restart(options, 0, 1, {}, now).escalate);
}

TEST_CASE("restarts longer ago than the period are forgiven") {
  times earlier = {now - 30s, now - 31s, now - 500s};
  CHECK(decide_restart(options_of(one_for_one), 0, 1, earlier, now) == restart_decision{false, {0}, 0ms});
}

TEST_CASE("long histories and huge delays do not overflow") {
  auto options = options_of(one_for_one);
  options.intensity = 1000;
  options.backoff = std::chrono::steady_clock::duration::max() / 3;
  options.backoff_limit = std::chrono::steady_clock::duration::max();
  CHECK(decide_restart(options, 0, 1, times(500, now), now).delay == options.backoff_limit);
  options.backoff_limit = 1ns;
  CHECK(decide_restart(options, 0, 1, times(500, now), now).delay == 1ns);
}

TEST_CASE("a child out of range is refused") {
  CHECK_THROWS_AS(decide_restart(options_of(one_for_one), 4, 4, {}, now), std::invalid_argument);
  CHECK_THROWS_AS(decide_restart(options_of(one_for_one), -1, 4, {}, now), std::invalid_argument);
}

TEST_CASE("a count of restarts delays each, escalates beyond its intensity and forgives after the period") {
  restart_intensity counted(options_of(one_for_one));
  CHECK(counted.restart(now) == 0ms);
  CHECK(counted.restart(now + 1s) == 50ms);
  CHECK(counted.restart(now + 2s) == 100ms);
  CHECK(counted.num_recent(now + 2s) == 3);
  CHECK_FALSE(counted.restart(now + 29s));
  CHECK(counted.num_recent(now + 30s) == 2);
  CHECK(counted.restart(now + 30s) == 100ms);
  CHECK_FALSE(counted.restart(now + 30s));
  CHECK(counted.restart(now + 90s) == 0ms);
}
