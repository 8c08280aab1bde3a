#include "troupe/schedule/simulation/simulate.hpp"

#include <algorithm>
#include <sstream>

#include "troupe/error/errors.hpp"
#include "troupe/schedule/action_graph.hpp"
#include "troupe/schedule/checks/check_plan.hpp"

namespace troupe {
namespace {

constexpr std::size_t most_findings = 10;

void check_sound(const plan& simulated) {
  auto found = schedule::check_plan(simulated);
  if (found.empty()) return;
  std::string text = "the plan is not valid: ";
  for (std::size_t i = 0; i < std::min(found.size(), most_findings); ++i) text += (i ? "; " : "") + found[i];
  if (found.size() > most_findings)
    text += "; and " + std::to_string(found.size() - most_findings) + " more findings";
  throw bad_input(text);
}

bool is_backward(action_kind kind) {
  return kind == action_kind::backward || kind == action_kind::input_gradient;
}

/// Far enough below the largest double that sums over devices and percentages are finite, too.
constexpr double longest_time = 1e300;

void check_time(double time) {
  if (time >= 0 && time <= longest_time) return;
  std::ostringstream text;
  text << "costs are durations: expected numbers from 0 on, in sum at most " << longest_time << ", got "
       << time;
  throw bad_input(text.str());
}

action_time time_from(action_kind kind, const action_costs& costs) {
  auto duration = duration_of(kind, costs);
  bool is_early = kind == action_kind::backward && costs.hands_on_early;
  return {duration, is_early ? costs.input_gradient : duration};
}

/// [node] of each action.
std::vector<action_time> times_of_actions(const schedule::action_graph& graph,
                                          const time_of_action& time_of) {
  std::vector<action_time> times;
  for (const auto& node : graph.nodes) {
    times.push_back(time_of(node.op));
    check_time(times.back().duration);
    check_time(times.back().hands_on_after);
  }
  return times;
}

/// When what `next` takes from `before` is there. Only input gradients are handed on early.
double time_of_output(const timed_action& before, const action_time& took, const action& next) {
  bool takes_input_gradients = before.op.kind == action_kind::backward && is_backward(next.kind);
  return takes_input_gradients ? before.begin + took.hands_on_after : before.end;
}

/// How long a tensor takes from an action to one on another device.
using delay_between = std::function<double(const action& before, const action& next)>;

std::vector<timed_action> run_times(const schedule::action_graph& graph,
                                    const std::vector<action_time>& durations, const delay_between& delay) {
  std::vector<timed_action> times(graph.nodes.size());
  schedule::graph_walk walk(graph);
  while (auto index = walk.next()) {
    auto here = static_cast<std::size_t>(*index);
    const auto& node = graph.nodes[here];
    bool is_first = graph.first_of_device[static_cast<std::size_t>(node.device)] == *index;
    double begin = is_first ? 0 : times[here - 1].end;
    for (int input : node.inputs) {
      if (input == schedule::action_graph::none) continue;
      auto from = static_cast<std::size_t>(input);
      bool crosses = graph.nodes[from].device != node.device;
      auto sent = time_of_output(times[from], durations[from], node.op);
      begin = std::max(begin, sent + (crosses ? delay(graph.nodes[from].op, node.op) : 0));
    }
    times[here] = {node.op, begin, begin + durations[here].duration};
  }
  return times;
}

timeline run(const plan& simulated, const time_of_action& time_of, const delay_between& delay) {
  schedule::action_graph graph(simulated);
  auto durations = times_of_actions(graph, time_of);
  auto times = run_times(graph, durations, delay);
  timeline ran;
  for (int device = 0; device < simulated.num_devices(); ++device) {
    auto first = times.begin() + graph.first_of_device[static_cast<std::size_t>(device)];
    auto last = times.begin() + graph.first_of_device[static_cast<std::size_t>(device) + 1];
    ran.devices.emplace_back(first, last);
    if (first != last) ran.makespan = std::max(ran.makespan, (last - 1)->end);
  }
  check_time(ran.makespan);
  for (int device = 0; device < simulated.num_devices(); ++device) {
    double work = 0;
    for (int node = graph.first_of_device[static_cast<std::size_t>(device)];
         node < graph.first_of_device[static_cast<std::size_t>(device) + 1]; ++node)
      work += durations[static_cast<std::size_t>(node)].duration;
    ran.idle.push_back(ran.makespan - work);
    ran.peak_activations.push_back(peak_activations(ran.devices[static_cast<std::size_t>(device)]));
  }
  return ran;
}

}  // namespace

void check_costs(const action_costs& costs) {
  for (double cost : {costs.forward, costs.input_gradient, costs.weight_gradient, costs.reduction,
                      costs.apply, costs.communication, costs.all_reduce})
    check_time(cost);
}

double duration_of(action_kind kind, const action_costs& costs) {
  switch (kind) {
    case action_kind::forward:
      return costs.forward;
    case action_kind::backward:
      return costs.input_gradient + costs.weight_gradient;
    case action_kind::input_gradient:
      return costs.input_gradient;
    case action_kind::weight_gradient:
      return costs.weight_gradient;
    case action_kind::reduce_gradient:
      return costs.reduction;
    case action_kind::apply:
      return costs.apply;
    case action_kind::all_reduce:
      return costs.all_reduce;
  }
  throw_invalid("duration_of", "a kind of action", std::to_string(static_cast<int>(kind)));
}

int peak_activations(const std::vector<timed_action>& device) {
  bool is_training = std::any_of(device.begin(), device.end(), [](const timed_action& done) {
    return done.op.kind != action_kind::forward;
  });
  if (!is_training) return 0;
  int saved = 0;
  int peak = 0;
  for (const auto& done : device) {
    if (done.op.kind == action_kind::forward) peak = std::max(peak, ++saved);
    if (done.op.kind == action_kind::backward || done.op.kind == action_kind::weight_gradient) --saved;
  }
  return peak;
}

timeline simulate(const plan& simulated, const action_costs& costs) {
  check_costs(costs);
  return simulate_with(
      simulated, [&costs](const action& op) { return time_from(op.kind, costs); }, costs.communication);
}

timeline simulate_stages(const plan& simulated, const std::vector<action_costs>& costs_of_stage) {
  std::ranges::for_each(costs_of_stage, check_costs);
  check_sound(simulated);
  if (costs_of_stage.size() != static_cast<std::size_t>(simulated.num_stages))
    throw bad_input("costs of " + std::to_string(costs_of_stage.size()) + " stages, but the plan has " +
                    std::to_string(simulated.num_stages) + ". Give costs of each stage");
  auto costs_of = [&](int stage) -> const action_costs& {
    return costs_of_stage[static_cast<std::size_t>(stage)];
  };
  auto time_of = [&](const action& op) { return time_from(op.kind, costs_of(op.stage)); };
  // The later stage of the two knows what goes between them.
  auto delay = [&](const action& before, const action& next) {
    return costs_of(std::max(before.stage, next.stage)).communication;
  };
  return run(simulated, time_of, delay);
}

timeline simulate_with(const plan& simulated, const time_of_action& time_of, double communication) {
  check_time(communication);
  check_sound(simulated);
  return run(simulated, time_of, [communication](const action&, const action&) { return communication; });
}

}  // namespace troupe
