#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "runtime/schedule/drawn_plans.hpp"
#include "runtime/schedule/plan_runner.hpp"
#include "troupe/schedule/checks/check_plan.hpp"
#include "troupe/schedule/text/plan_text.hpp"

namespace {

using troupe::action;
using troupe::action_kind;
using troupe::plan;
using troupe::testing::drawn_below;
using troupe::testing::drawn_index;
using troupe::testing::plan_runner;
using actions = std::vector<action>;

/// Changes a plan at random, for the worse or not.
class mutator {
 public:
  explicit mutator(std::mt19937& random) : random_(random) {}

  void mutate(plan& changed) {
    auto& device = changed.devices[index(changed.devices.size())];
    if (device.empty()) return;
    auto at = index(device.size());
    switch (drawn_below(10, random_)) {
      case 0:
        std::swap(device[at], device[index(device.size())]);
        break;
      case 1:
      case 2:
        if (at + 1 < device.size()) std::swap(device[at], device[at + 1]);
        break;
      case 3:
        device.erase(begin_at(device, at));
        break;
      case 4:
        device.insert(begin_at(device, index(device.size())), action(device[at]));
        break;
      case 5:
        move_elsewhere(changed, device, at);
        break;
      case 6:
        change_action(changed, device[at]);
        break;
      case 7:
        change_edges(changed);
        break;
      default:
        split(device, at);
        break;
    }
  }

 private:
  std::size_t index(std::size_t size) { return drawn_index(size, random_); }
  static actions::iterator begin_at(actions& list, std::size_t at) {
    return list.begin() + static_cast<std::ptrdiff_t>(at);
  }

  void move_elsewhere(plan& changed, actions& device, std::size_t at) {
    auto moved = device[at];
    device.erase(begin_at(device, at));
    auto& other = changed.devices[index(changed.devices.size())];
    other.insert(begin_at(other, index(other.size() + 1)), moved);
  }

  void change_action(plan& changed, action& op) {
    switch (drawn_below(4, random_)) {
      case 0:
        op.kind = static_cast<action_kind>(drawn_below(static_cast<int>(troupe::num_action_kinds), random_));
        break;
      case 1:
        op.microbatch = drawn_below(changed.num_microbatches + 2, random_) - 1;
        break;
      case 2:
        op.stage = drawn_below(changed.num_stages + 2, random_) - 1;
        break;
      case 3:
        changed.device_of_stage[index(changed.device_of_stage.size())] =
            drawn_below(changed.num_devices(), random_);
        break;
    }
  }

  /// Edges stay in order, which is a rule of the form and no worker's.
  void change_edges(plan& changed) {
    auto& edges = changed.edges;
    auto kind = drawn_below(4, random_);
    if (kind < 2 && changed.num_stages > 1) troupe::testing::add_edge(changed, random_);
    if (kind >= 2 && !edges.empty()) {
      auto& each = edges[index(edges.size())];
      int* fields[] = {&each.from, &each.output, &each.to, &each.input};
      if (kind == 2)
        *fields[index(4)] = drawn_below(changed.num_stages + 2, random_) - 1;
      else
        edges.erase(edges.begin() + (&each - edges.data()));
    }
    std::ranges::sort(edges);
  }

  /// Splits a backward, the weight gradient coming somewhere later.
  void split(actions& device, std::size_t at) {
    if (device[at].kind != action_kind::backward) return;
    device[at].kind = action_kind::input_gradient;
    action weights{device[at].stage, action_kind::weight_gradient, device[at].microbatch};
    auto later = at + 1 + index(device.size() - at);
    device.insert(begin_at(device, later), weights);
  }

  std::mt19937& random_;
};

}  // namespace

TEST_CASE("check_plan accepts exactly the plans that a simulated run completes") {
  int num_sound = 0;
  int num_unsound = 0;
  for (unsigned seed = 0; seed < 30'000; ++seed) {
    std::mt19937 random(seed);
    auto changed = troupe::make_plan(troupe::testing::drawn_options(6, 6, random));
    auto mutations = seed % 4;
    for (unsigned i = 0; i < mutations; ++i) mutator(random).mutate(changed);
    bool sound = plan_runner(changed).runs_soundly();
    auto found = troupe::schedule::check_plan(changed);
    CAPTURE(seed, troupe::schedule::plan_text(changed), found);
    REQUIRE(found.empty() == sound);
    ++(sound ? num_sound : num_unsound);
  }
  CHECK(num_sound > 10'000);
  CHECK(num_unsound > 10'000);
}
