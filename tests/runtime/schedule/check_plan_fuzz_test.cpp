#include <catch2/catch_test_macros.hpp>
#include <map>
#include <random>

#include "troupe/schedule/check_plan.hpp"

namespace {

using troupe::action;
using troupe::action_kind;
using troupe::plan;

/// Says whether a plan is sound by running it: devices take turns, each doing its next action if what it
/// needs is there. Rules are those of a worker that is handed tensors, not those of a graph.
class plan_runner {
 public:
  explicit plan_runner(const plan& run) : run_(run), next_(run.devices.size(), 0) {}

  bool runs_to_its_end() {
    while (!broken_ && any_device_steps()) continue;
    return !broken_ && all_actions_done();
  }

 private:
  bool any_device_steps() {
    bool moved = false;
    for (std::size_t device = 0; device < next_.size(); ++device) {
      if (next_[device] == run_.devices[device].size()) continue;
      const auto& op = run_.devices[device][next_[device]];
      if (!is_on_own_device(op, static_cast<int>(device))) broken_ = true;
      if (broken_ || !inputs_are_there(op)) continue;
      perform(op);
      ++next_[device];
      moved = true;
    }
    return moved;
  }

  bool is_on_own_device(const action& op, int device) const {
    return op.stage < run_.num_stages && op.microbatch < run_.num_microbatches &&
           run_.device_of_stage.at(static_cast<std::size_t>(op.stage)) == device;
  }

  bool inputs_are_there(const action& op) {
    auto [stage, kind, microbatch] = op;
    if (kind == action_kind::forward) return stage == 0 || outputs_[{stage - 1, microbatch}] > 0;
    if (kind == action_kind::weight_gradient) return gradients_[{stage, microbatch}] > 0;
    bool has_gradient = stage == run_.num_stages - 1 || gradients_[{stage + 1, microbatch}] > 0;
    return has_gradient && outputs_[{stage, microbatch}] > 0;
  }

  void perform(const action& op) {
    std::pair cell{op.stage, op.microbatch};
    if (op.kind == action_kind::forward) broken_ |= ++outputs_[cell] > 1;
    if (op.kind == action_kind::backward || op.kind == action_kind::input_gradient)
      broken_ |= ++gradients_[cell] > 1;
    if (op.kind == action_kind::backward || op.kind == action_kind::weight_gradient)
      broken_ |= weights_[op.stage]++ != op.microbatch;
  }

  bool all_actions_done() {
    for (std::size_t device = 0; device < next_.size(); ++device)
      if (next_[device] != run_.devices[device].size()) return false;
    bool training = run_.kind != troupe::schedule_kind::forward_only;
    for (int stage = 0; stage < run_.num_stages; ++stage) {
      if (weights_[stage] != (training ? run_.num_microbatches : 0)) return false;
      for (int microbatch = 0; microbatch < run_.num_microbatches; ++microbatch)
        if (outputs_[{stage, microbatch}] != 1 || gradients_[{stage, microbatch}] != (training ? 1 : 0))
          return false;
    }
    return true;
  }

  const plan& run_;
  std::vector<std::size_t> next_;
  std::map<std::pair<int, int>, int> outputs_;    // by stage and microbatch
  std::map<std::pair<int, int>, int> gradients_;  // by stage and microbatch
  std::map<int, int> weights_;                    // microbatches added up, by stage
  bool broken_ = false;
};

class mutator {
 public:
  explicit mutator(unsigned seed) : random_(seed) {}

  plan sound_plan() {
    troupe::plan_options options;
    options.kind = static_cast<troupe::schedule_kind>(below(3));
    options.num_stages = 1 + below(5);
    options.num_microbatches = 1 + below(6);
    options.num_devices = 1 + below(options.num_stages);
    return troupe::make_plan(options);
  }

  void mutate(plan& changed) {
    auto& device = changed.devices[index(changed.devices.size())];
    if (device.empty()) return;
    auto at = index(device.size());
    switch (below(6)) {
      case 0:
        std::swap(device[at], device[index(device.size())]);
        break;
      case 1:
        if (at + 1 < device.size()) std::swap(device[at], device[at + 1]);
        break;
      case 2:
        device.erase(begin_at(device, at));
        break;
      case 3:
        device.insert(begin_at(device, index(device.size())), action(device[at]));
        break;
      case 4:
        move_elsewhere(changed, device, at);
        break;
      case 5:
        split(device, at);
        break;
    }
  }

 private:
  using actions = std::vector<action>;
  int below(int limit) { return static_cast<int>(index(static_cast<std::size_t>(limit))); }
  std::size_t index(std::size_t size) {
    return std::uniform_int_distribution<std::size_t>(0, size - 1)(random_);
  }
  static actions::iterator begin_at(actions& list, std::size_t at) {
    return list.begin() + static_cast<std::ptrdiff_t>(at);
  }

  void move_elsewhere(plan& changed, actions& device, std::size_t at) {
    auto moved = device[at];
    device.erase(begin_at(device, at));
    auto& other = changed.devices[index(changed.devices.size())];
    other.insert(begin_at(other, index(other.size() + 1)), moved);
  }

  /// Splits a backward, the weight gradient coming somewhere later.
  void split(actions& device, std::size_t at) {
    if (device[at].kind != action_kind::backward) return;
    device[at].kind = action_kind::input_gradient;
    action weights{device[at].stage, action_kind::weight_gradient, device[at].microbatch};
    auto later = at + 1 + index(device.size() - at);
    device.insert(begin_at(device, later), weights);
  }

  std::mt19937 random_;
};

std::string described(const plan& shown) {
  std::string text(to_string(shown.kind));
  for (const auto& device : shown.devices) {
    text += " |";
    for (const auto& op : device) text.append(" ").append(to_string(op));
  }
  return text;
}

}  // namespace

TEST_CASE("check_plan accepts exactly the plans that a simulated run completes") {
  int num_sound = 0;
  int num_unsound = 0;
  for (unsigned seed = 0; seed < 20'000; ++seed) {
    mutator random(seed);
    auto changed = random.sound_plan();
    auto mutations = seed % 4;
    for (unsigned i = 0; i < mutations; ++i) random.mutate(changed);
    bool sound = plan_runner(changed).runs_to_its_end();
    auto found = troupe::check_plan(changed);
    CAPTURE(seed, described(changed), found);
    REQUIRE(found.empty() == sound);
    ++(sound ? num_sound : num_unsound);
  }
  CHECK(num_sound > 5000);
  CHECK(num_unsound > 5000);
}
