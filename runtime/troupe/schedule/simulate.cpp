#include "troupe/schedule/simulate.hpp"

#include <algorithm>
#include <cmath>

#include "troupe/error/errors.hpp"
#include "troupe/schedule/action_graph.hpp"
#include "troupe/schedule/check_plan.hpp"

namespace troupe {
namespace {

constexpr std::size_t most_findings = 10;

void check_sound(const plan& simulated) {
  auto found = check_plan(simulated);
  if (found.empty()) return;
  std::string text = "the plan is not sound: ";
  for (std::size_t i = 0; i < std::min(found.size(), most_findings); ++i) text += (i ? "; " : "") + found[i];
  if (found.size() > most_findings)
    text += "; and " + std::to_string(found.size() - most_findings) + " more findings";
  throw bad_input(text);
}

bool is_backward(action_kind kind) {
  return kind == action_kind::backward || kind == action_kind::input_gradient;
}

/// When what `next` takes from `before` is there.
double time_of_output(const timed_action& before, const action& next, const action_costs& costs) {
  bool takes_input_gradients = before.op.kind == action_kind::backward && is_backward(next.kind);
  return takes_input_gradients && costs.hands_on_early ? before.begin + costs.input_gradient : before.end;
}

std::vector<timed_action> run_times(const action_graph& graph, const action_costs& costs) {
  std::vector<timed_action> times(graph.nodes.size());
  graph_walk walk(graph);
  while (auto index = walk.next()) {
    auto here = static_cast<std::size_t>(*index);
    const auto& node = graph.nodes[here];
    bool is_first = graph.first_of_device[static_cast<std::size_t>(node.device)] == *index;
    double begin = is_first ? 0 : times[here - 1].end;
    for (int input : node.inputs) {
      if (input == action_graph::none) continue;
      auto from = static_cast<std::size_t>(input);
      bool crosses = graph.nodes[from].device != node.device;
      begin =
          std::max(begin, time_of_output(times[from], node.op, costs) + (crosses ? costs.communication : 0));
    }
    times[here] = {node.op, begin, begin + duration_of(node.op.kind, costs)};
  }
  return times;
}

}  // namespace

void check_costs(const action_costs& costs) {
  for (double cost : {costs.forward, costs.input_gradient, costs.weight_gradient, costs.reduction,
                      costs.apply, costs.communication})
    if (!std::isfinite(cost) || cost < 0)
      throw bad_input("costs are durations: expected finite numbers from 0 on, got " + std::to_string(cost));
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
  check_sound(simulated);
  action_graph graph(simulated);
  auto times = run_times(graph, costs);
  timeline ran;
  for (int device = 0; device < simulated.num_devices(); ++device) {
    auto first = times.begin() + graph.first_of_device[static_cast<std::size_t>(device)];
    auto last = times.begin() + graph.first_of_device[static_cast<std::size_t>(device) + 1];
    ran.devices.emplace_back(first, last);
    if (first != last) ran.makespan = std::max(ran.makespan, (last - 1)->end);
  }
  for (const auto& device : ran.devices) {
    double work = 0;
    for (const auto& done : device) work += duration_of(done.op.kind, costs);
    ran.idle.push_back(ran.makespan - work);
    ran.peak_activations.push_back(peak_activations(device));
  }
  return ran;
}

}  // namespace troupe
