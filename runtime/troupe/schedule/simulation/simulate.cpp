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
  auto transfer = kind == action_kind::all_reduce ? costs.sum_transfer
                  : kind == action_kind::unshard  ? costs.unshard_transfer
                                                  : 0;
  return {duration, is_early ? costs.input_gradient : duration, transfer, costs.num_buckets};
}

/// [node] of each action.
std::vector<action_time> times_of_actions(const schedule::action_graph& graph,
                                          const time_of_action& time_of) {
  std::vector<action_time> times;
  for (const auto& node : graph.nodes) {
    times.push_back(time_of(node.op));
    check_time(times.back().duration);
    check_time(times.back().hands_on_after);
    check_time(times.back().transfer);
    if (times.back().num_buckets < 1)
      throw bad_input("the gradients of a stage are in at least 1 bucket, got " +
                      std::to_string(times.back().num_buckets));
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

bool computes_weight_gradients(action_kind kind) {
  return kind == action_kind::backward || kind == action_kind::weight_gradient;
}

/// The links of a plan's devices to those of other lanes.
class lane_links {
 public:
  lane_links(const schedule::action_graph& graph, const std::vector<action_time>& times)
      : graph_(graph),
        times_(times),
        carried_(graph.first_of_device.size()),
        arrives_at_(graph.nodes.size(), 0) {}

  /// When all that the action waits for has arrived over the links.
  double ready_at(std::size_t node) const { return arrives_at_[node]; }
  /// When a tensor for another device of the lane leaves, which waits for the bucket that is under way alone.
  double leaves_at(int device, double ready) const {
    const auto& all = carried_[static_cast<std::size_t>(device)];
    auto next = std::ranges::upper_bound(all, ready, {}, &bucket::end);
    return next != all.end() && next->begin < ready ? next->end : ready;
  }

  /// The action was run: what leaves with it leaves. Those of a device come in the order of its list.
  void send_from(std::size_t node, const timed_action& done) {
    auto of_node = std::ranges::equal_range(graph_.transfers, static_cast<int>(node), {},
                                            &schedule::action_graph::transfer::start);
    for (const auto& each : of_node) {
      auto& arrival = arrives_at_[static_cast<std::size_t>(each.done)];
      arrival = std::max(arrival, end_of(each, done));
    }
  }

 private:
  struct bucket {
    double begin = 0, end = 0;
  };
  /// Buckets of gradients become complete evenly over the time of the action that computes the last of them,
  /// of a B that hands its input gradients on early after that.
  double end_of(const schedule::action_graph::transfer& sent, const timed_action& done) {
    const auto& time = times_[static_cast<std::size_t>(index_of(sent))];
    auto& carried =
        carried_[static_cast<std::size_t>(graph_.nodes[static_cast<std::size_t>(sent.start)].device)];
    bool is_early = sent.op.kind == action_kind::all_reduce && sent.op.axis == layout::mesh_axis::dp &&
                    computes_weight_gradients(done.op.kind);
    auto num_parts = is_early ? time.num_buckets : 1;
    const auto& start = times_[static_cast<std::size_t>(sent.start)];
    auto before = start.hands_on_after < start.duration ? start.hands_on_after : 0;
    for (int part = 1; part <= num_parts; ++part) {
      auto ready = done.begin + before + (start.duration - before) * part / num_parts;
      auto begin = carried.empty() ? ready : std::max(carried.back().end, ready);
      carried.push_back({begin, begin + time.transfer / num_parts});
    }
    return carried.back().end;
  }
  /// The node of the G or U itself.
  static int index_of(const schedule::action_graph::transfer& sent) {
    return sent.op.kind == action_kind::all_reduce ? sent.done : sent.start;
  }

  const schedule::action_graph& graph_;
  const std::vector<action_time>& times_;
  std::vector<std::vector<bucket>> carried_;  // [device] in their order
  std::vector<double> arrives_at_;            // [node] 0: nothing does
};

std::vector<timed_action> run_times(const plan& simulated, const schedule::action_graph& graph,
                                    const std::vector<action_time>& durations, const delay_between& delay) {
  std::vector<timed_action> times(graph.nodes.size());
  lane_links links(graph, durations);
  schedule::graph_walk walk(graph);
  while (auto index = walk.next()) {
    auto here = static_cast<std::size_t>(*index);
    const auto& node = graph.nodes[here];
    bool is_first = graph.first_of_device[static_cast<std::size_t>(node.device)] == *index;
    double begin = std::max(is_first ? 0 : times[here - 1].end, links.ready_at(here));
    for (int input : node.inputs) {
      if (input == schedule::action_graph::none) continue;
      auto from = static_cast<std::size_t>(input);
      auto sender = graph.nodes[from].device;
      bool crosses = sender != node.device && simulated.lane_of(sender) == simulated.lane_of(node.device);
      auto sent = time_of_output(times[from], durations[from], node.op);
      if (crosses) sent = links.leaves_at(sender, sent) + delay(graph.nodes[from].op, node.op);
      begin = std::max(begin, sent);
    }
    times[here] = {node.op, begin, begin + durations[here].duration};
    links.send_from(here, times[here]);
  }
  return times;
}

timeline run(const plan& simulated, const time_of_action& time_of, const delay_between& delay) {
  schedule::action_graph graph(simulated);
  auto durations = times_of_actions(graph, time_of);
  auto times = run_times(simulated, graph, durations, delay);
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
  for (double cost :
       {costs.forward, costs.input_gradient, costs.weight_gradient, costs.reduction, costs.apply,
        costs.communication, costs.all_reduce, costs.sum_transfer, costs.unshard_transfer})
    check_time(cost);
}

double transfer_time(action_kind kind, double bytes, int num_lanes, const link_model& link) {
  bool is_sum = kind == action_kind::all_reduce;
  if (!is_sum && kind != action_kind::unshard)
    throw_invalid("transfer_time", "a G or U", std::to_string(static_cast<int>(kind)));
  if (!(link.bytes_per_time > 0) || num_lanes < 1)
    throw bad_input(
        "expected a link that takes more than 0 bytes in a unit of time, and at least 1 lane, got " +
        std::to_string(link.bytes_per_time) + " and " + std::to_string(num_lanes));
  check_time(bytes);
  check_time(link.latency);
  if (num_lanes == 1) return 0;
  auto once = bytes * (num_lanes - 1) / num_lanes / link.bytes_per_time + link.latency;
  return is_sum ? 2 * once : once;
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
    case action_kind::unshard:
    case action_kind::reshard:
      return 0;
  }
  throw_invalid("duration_of", "a kind of action", std::to_string(static_cast<int>(kind)));
}

int peak_activations(const std::vector<timed_action>& device) {
  bool is_training = std::any_of(device.begin(), device.end(), [](const timed_action& done) {
    return done.op.kind != action_kind::forward && !is_of_storage(done.op.kind);
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
