// Interpreters of drawn plans run up to drawn cuts.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <random>

#include "runtime/execution/test_devices.hpp"
#include "runtime/schedule/drawn_plans.hpp"
#include "troupe/schedule/text/plan_text.hpp"

using namespace troupe;
using namespace troupe::execution;
using namespace troupe::testing;

namespace {

constexpr std::uint64_t num_cut_steps = 3;

/// One in each list within the first two steps.
cut drawn_cut(const plan& of, std::mt19937& random) {
  cut drawn;
  for (int device = 0; device < of.num_job_devices(); ++device) {
    auto size = of.actions_of(device).size();
    drawn.devices.push_back(
        {drawn_index(2, random), static_cast<std::uint32_t>(drawn_index(size + 1, random))});
  }
  return drawn;
}

/// What a cut has inside, found by going through the lists.
class inside {
 public:
  inside(const plan& of, const cut& at) : plan_(of), at_(at) {}

  bool has(const action& wanted, std::uint64_t step) const {
    for (std::size_t device = 0; device < plan_.devices.size(); ++device)
      for (std::uint32_t i = 0; i < plan_.devices[device].size(); ++i)
        if (plan_.devices[device][i] == wanted) return is_before(device, i, step);
    return false;
  }
  /// B or I.
  bool has_gradient(int stage, int microbatch, std::uint64_t step) const {
    return has({stage, action_kind::backward, microbatch}, step) ||
           has({stage, action_kind::input_gradient, microbatch}, step);
  }
  /// Whether the stage has come to its R.
  bool has_share(int stage, int reduction, std::uint64_t step) const {
    auto device = static_cast<std::size_t>(plan_.device_of_stage[static_cast<std::size_t>(stage)]);
    const auto& actions = plan_.devices[device];
    std::optional<std::uint32_t> before;
    for (std::uint32_t i = 0; i < actions.size(); ++i) {
      if (actions[i] == action{stage, action_kind::reduce_gradient, reduction})
        return before && is_before(device, *before, step);
      if (actions[i].stage == stage) before = i;
    }
    return false;
  }

 private:
  bool is_before(std::size_t device, std::uint32_t index, std::uint64_t step) const {
    return plan_position{step, index} < at_.devices[device];
  }
  const plan& plan_;
  const cut& at_;
};

/// Whether an edge before it brings the same tensor to the same stage: it is sent once.
bool is_repeated(const plan& of, const schedule::edge& one) {
  return std::any_of(of.edges.begin(), std::ranges::find(of.edges, one), [&](const schedule::edge& other) {
    return other.from == one.from && other.output == one.output && other.to == one.to;
  });
}

/// How many tensors cross the cut to each device: those that an action inside sends to one outside.
std::vector<std::size_t> crossing(const plan& of, const cut& at) {
  inside done(of, at);
  std::vector<std::size_t> counts(of.devices.size());
  auto count = [&](int stage, bool is_sent, bool is_taken) {
    auto device = of.device_of_stage[static_cast<std::size_t>(stage)];
    if (is_sent && !is_taken) ++counts[static_cast<std::size_t>(device)];
  };
  for (std::uint64_t step = 0; step < num_cut_steps; ++step) {
    for (const auto& each : of.edges)
      for (int microbatch = 0; microbatch < of.num_microbatches; ++microbatch) {
        count(each.to,
              !is_repeated(of, each) && done.has({each.from, action_kind::forward, microbatch}, step),
              done.has({each.to, action_kind::forward, microbatch}, step));
        count(each.from, done.has_gradient(each.to, microbatch, step),
              done.has_gradient(each.from, microbatch, step));
      }
    for (std::size_t number = 0; number < of.reductions.size(); ++number)
      for (int from : of.reductions[number].stages)
        for (int to : of.reductions[number].stages) {
          auto reduction = static_cast<int>(number);
          count(to, done.has_share(from, reduction, step),
                done.has({to, action_kind::reduce_gradient, reduction}, step));
        }
  }
  return counts;
}

void check_stands_at(const devices_in_turns& devices, const plan& running, const cut& at) {
  auto expected = crossing(running, at);
  for (int device = 0; device < running.num_devices(); ++device) {
    CAPTURE(device);
    REQUIRE(devices.at(device).position() == at.devices[static_cast<std::size_t>(device)]);
    REQUIRE(devices.at(device).num_unread() == expected[static_cast<std::size_t>(device)]);
  }
}

}  // namespace

TEST_CASE("devices that run up to a closed cut all get there, and only tensors that cross it are not taken",
          "[many]") {
  for (unsigned seed = 0; seed < 3'000; ++seed) {
    std::mt19937 random(seed);
    auto running = drawn_split_plan(random);
    auto closed = smallest_closed_cut(running, drawn_cut(running, random));
    CAPTURE(seed, schedule::plan_text(running));
    REQUIRE(is_closed(running, closed));
    traced_stages stages(running);
    devices_in_turns devices(running, stages);
    REQUIRE(devices.run_to(closed, random));
    check_stands_at(devices, running, closed);
  }
}

TEST_CASE(
    "the devices of several replicas and slices that run up to a closed cut all get there, and go on from it",
    "[many]") {
  for (unsigned seed = 0; seed < 3'000; ++seed) {
    std::mt19937 random(seed);
    auto running = drawn_mesh_plan(random);
    auto closed = smallest_closed_cut(running, drawn_cut(running, random));
    CAPTURE(seed, schedule::plan_text(running));
    REQUIRE(is_closed(running, closed));
    traced_stages stages(running);
    devices_in_turns devices(running, stages);
    REQUIRE(devices.run_to(closed, random));
    REQUIRE(devices.run_to(step_cut(running, num_cut_steps), random));
    REQUIRE(stages.results() ==
            expected_results(running, pass_of(running) == pass_kind::train, num_cut_steps));
  }
}

TEST_CASE("devices that run up to a cut that is not closed wait for the action that is named as outside",
          "[many]") {
  int num_open = 0;
  for (unsigned seed = 0; seed < 3'000; ++seed) {
    std::mt19937 random(seed);
    auto running = drawn_split_plan(random);
    auto drawn = drawn_cut(running, random);
    auto open = find_open_wait(running, drawn);
    if (!open || open->is_together) continue;
    ++num_open;
    CAPTURE(seed, schedule::plan_text(running), open->text);
    traced_stages stages(running);
    devices_in_turns devices(running, stages);
    REQUIRE_FALSE(devices.run_to(drawn, random));
    REQUIRE(devices.at(open->device).position() < drawn.devices[static_cast<std::size_t>(open->device)]);
    inside done(running, drawn);
    REQUIRE(done.has(open->inside, open->step));
    REQUIRE_FALSE(done.has(open->outside, open->step));
  }
  CHECK(num_open > 500);
}

TEST_CASE("jobs that are taken through their plan by single steps of drawn units compute the same",
          "[many]") {
  for (unsigned seed = 0; seed < 1'000; ++seed) {
    std::mt19937 random(seed);
    auto running = drawn_split_plan(random);
    CAPTURE(seed, schedule::plan_text(running));
    traced_stages stages(running);
    devices_in_turns devices(running, stages);
    auto end = step_cut(running, num_cut_steps);
    for (auto at = step_cut(running, 0); at != end;) {
      auto before = at;
      at = advanced_cut(running, at, static_cast<step_unit>(drawn_index(3, random)),
                        1 + drawn_index(3, random));
      REQUIRE(at != before);
      for (std::size_t device = 0; device < at.devices.size(); ++device) {
        REQUIRE(at.devices[device] >= before.devices[device]);
        at.devices[device] = std::min(at.devices[device], end.devices[device]);
      }
      REQUIRE(is_closed(running, at));
      REQUIRE(devices.run_to(at, random));
      check_stands_at(devices, running, at);
    }
    REQUIRE(stages.results() ==
            expected_results(running, pass_of(running) == pass_kind::train, num_cut_steps));
  }
}
