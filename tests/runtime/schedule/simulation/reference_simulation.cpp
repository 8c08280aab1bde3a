#include "runtime/schedule/simulation/reference_simulation.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace troupe::testing {
namespace {

class device_run {
 public:
  device_run(const plan& run, std::function<action_time(const action&)> time_of, double communication)
      : run_(run), time_of_(std::move(time_of)), communication_(communication), result_{} {
    result_.devices.resize(run.devices.size());
    kept_.resize(run.devices.size());
    result_.peak_activations.resize(run.devices.size(), 0);
  }

  timeline result() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t device = 0; device < run_.devices.size(); ++device)
        while (runs_next(device)) moved = true;
    }
    for (const auto& device : result_.devices)
      for (const auto& done : device) result_.makespan = std::max(result_.makespan, done.end);
    for (const auto& device : result_.devices) {
      double work = 0;
      for (const auto& done : device) work += done.end - done.begin;
      result_.idle.push_back(result_.makespan - work);
    }
    return result_;
  }

 private:
  using tensor_name = std::tuple<int, char, int>;  // stage, 'o'utput or 'g'radient of its input, microbatch

  bool runs_next(std::size_t device) {
    auto& done = result_.devices[device];
    if (done.size() == run_.devices[device].size()) return false;
    const auto& op = run_.devices[device][done.size()];
    double begin = done.empty() ? 0 : done.back().end;
    for (const auto& name : needed(op)) {
      auto found = made_.find(name);
      if (found == made_.end()) return false;
      bool crosses = device_of(std::get<0>(name)) != device;
      begin = std::max(begin, found->second + (crosses ? communication_ : 0));
    }
    auto took = time_of_(op);
    done.push_back({op, begin, begin + took.duration});
    finish(done.back(), begin + took.hands_on_after, device);
    return true;
  }

  std::vector<tensor_name> needed(const action& op) const {
    std::vector<tensor_name> names;
    if (op.kind == action_kind::weight_gradient) return {{op.stage, 'g', op.microbatch}};
    bool is_forward = op.kind == action_kind::forward;
    if (!is_forward && op.kind != action_kind::backward && op.kind != action_kind::input_gradient) return {};
    if (!is_forward) names.emplace_back(op.stage, 'o', op.microbatch);
    for (const auto& each : run_.edges) {
      if (is_forward && each.to == op.stage) names.emplace_back(each.from, 'o', op.microbatch);
      if (!is_forward && each.from == op.stage) names.emplace_back(each.to, 'g', op.microbatch);
    }
    return names;
  }

  void finish(const timed_action& done, double handed_on, std::size_t device) {
    auto [stage, kind, microbatch, axis] = done.op;
    auto& kept = kept_[device];
    if (kind == action_kind::forward) {
      made_[{stage, 'o', microbatch}] = done.end;
      kept.insert({stage, microbatch});
    }
    if (kind == action_kind::backward || kind == action_kind::input_gradient)
      made_[{stage, 'g', microbatch}] = handed_on;
    auto& peak = result_.peak_activations[device];
    peak = std::max(peak, static_cast<int>(kept.size()));
    if (kind == action_kind::backward || kind == action_kind::weight_gradient)
      kept.erase({stage, microbatch});
  }

  std::size_t device_of(int stage) const {
    return static_cast<std::size_t>(run_.device_of_stage[static_cast<std::size_t>(stage)]);
  }

  const plan& run_;
  std::function<action_time(const action&)> time_of_;
  double communication_;
  timeline result_;
  std::map<tensor_name, double> made_;               // when
  std::vector<std::set<std::pair<int, int>>> kept_;  // [device] stage, microbatch
};

}  // namespace

timeline reference_simulation(const plan& run, const action_costs& costs) {
  auto time_of = [&costs](const action& op) {
    auto duration = duration_of(op.kind, costs);
    return action_time{duration, duration};
  };
  return reference_simulation(run, time_of, costs.communication);
}

timeline reference_simulation(const plan& run, const std::function<action_time(const action&)>& time_of,
                              double communication) {
  return device_run(run, time_of, communication).result();
}

double own_idle(const std::vector<timed_action>& device) {
  double idle = device.back().end - device.front().begin;
  for (const auto& done : device) idle -= done.end - done.begin;
  return idle;
}

}  // namespace troupe::testing
