#include "troupe/schedule/cut.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/schedule/action_graph.hpp"

namespace troupe {
namespace {

constexpr std::array<std::string_view, 3> unit_names = {"step", "microbatch", "action"};

std::size_t index_of(int number) { return static_cast<std::size_t>(number); }

std::string lanes_text(const std::vector<layout::mesh_axis>& axes) {
  if (axes.size() != 1) return "lanes";
  return axes.front() == layout::mesh_axis::dp ? "replicas" : "slices";
}

/// What has to be inside a cut together with each action of a plan.
class closure {
 public:
  explicit closure(const plan& training) : plan_(training), graph_(training), needs_(graph_.nodes.size()) {
    for (std::size_t node = 0; node < graph_.nodes.size(); ++node) {
      const auto& [op, device, inputs] = graph_.nodes[node];
      for (int input : inputs)
        if ((is_of_microbatch(op) || is_of_storage(op.kind)) && input != schedule::action_graph::none &&
            is_sent(input, device))
          needs_[node].push_back(input);
    }
    for (const auto& together : graph_.together)
      for (int one : together)
        for (int other : together)
          if (other != one) needs_[index_of(one)].push_back(other);
  }

  const std::vector<schedule::action_graph::node>& nodes() const { return graph_.nodes; }

  /// In how many steps of the cut the action is inside: of steps 0 to this - 1.
  std::uint64_t num_inside(const cut& reached, int node) const {
    const auto& position = reached.devices[index_of(this->node(node).device)];
    return position.step + (place(node) < position.action ? 1 : 0);
  }

  /// Moves the device of the action, if necessary, so that the action is inside in `step`.
  void include(cut& reached, int node, std::uint64_t step) const {
    auto& position = reached.devices[index_of(this->node(node).device)];
    position = std::max(position, normal(this->node(node).device, {step, place(node) + 1}));
  }

  void close(cut& reached) const {
    for (bool changed = true; changed;) {
      changed = false;
      each_open(
          [&](int node, int needed) {
            include(reached, needed, num_inside(reached, node) - 1);
            changed = true;
            return false;
          },
          reached);
    }
  }

  /// Calls `handle(node, needed)` for each action that is inside in more steps than one that it needs, until
  /// it returns true.
  template <class Handler>
  void each_open(Handler handle, const cut& reached) const {
    for (int node = 0; node < static_cast<int>(needs_.size()); ++node)
      for (int needed : needs_[index_of(node)])
        if (num_inside(reached, needed) < num_inside(reached, node) && handle(node, needed)) return;
  }

  plan_position normal(int device, plan_position position) const {
    auto size = plan_.actions_of(device).size();
    return position.action < size || size == 0 ? position : plan_position{position.step + 1, 0};
  }

  void check(const cut& reached) const {
    auto num_devices = index_of(plan_.num_job_devices());
    if (reached.devices.size() != num_devices)
      throw_invalid("cut", std::to_string(num_devices) + " positions, one for each device",
                    std::to_string(reached.devices.size()));
    for (std::size_t device = 0; device < num_devices; ++device)
      if (auto size = plan_.actions_of(static_cast<int>(device)).size();
          reached.devices[device].action > size)
        throw_invalid(
            "cut",
            "a position among the " + std::to_string(size) + " actions of device " + std::to_string(device),
            std::to_string(reached.devices[device].action));
  }

  std::string text_of(int node, int needed, const cut& reached) const {
    const auto& inside = this->node(node);
    const auto& outside = this->node(needed);
    auto step = num_inside(reached, needed);
    const auto& stop = reached.devices[index_of(outside.device)];
    const auto& list = plan_.actions_of(outside.device);
    auto stops_before = stop.action < list.size() ? to_string(list[stop.action]) : "its end";
    return "device " + std::to_string(inside.device) + " runs " + to_string(inside.op) + " of step " +
           std::to_string(step) + ", which " + relation(inside.op, outside.op) + ", but device " +
           std::to_string(outside.device) + " stops before " + stops_before +
           (stop.step == step ? "" : " of step " + std::to_string(stop.step));
  }

 private:
  /// From another device of the lane, or a shard from another lane; what lanes do together is among
  /// action_graph::together.
  bool is_sent(int input, int to) const {
    auto from = node(input).device;
    return from != to &&
           (plan_.lane_of(from) == plan_.lane_of(to) || node(input).op.kind == action_kind::unshard);
  }
  const schedule::action_graph::node& node(int number) const { return graph_.nodes[index_of(number)]; }
  /// Index of an action in the list of its device.
  std::uint32_t place(int number) const {
    return static_cast<std::uint32_t>(number - graph_.first_of_device[index_of(node(number).device)]);
  }

  std::string relation(const action& inside, const action& outside) const {
    if (inside.kind == action_kind::reduce_gradient) return "is one reduction with " + to_string(outside);
    if (inside.kind == action_kind::all_reduce)
      return std::string("is one all-reduce with that of another ") +
             (inside.axis == layout::mesh_axis::dp ? "replica" : "slice");
    if (outside.kind == action_kind::unshard) return "reads the shard that " + to_string(outside) + " gives";
    if (inside == outside) return "all " + lanes_text(plan_.joint_axes(inside)) + " run together";
    bool is_forward = inside.kind == action_kind::forward;
    auto from = is_forward ? outside.stage : inside.stage, to = is_forward ? inside.stage : outside.stage;
    auto found = std::ranges::find_if(
        plan_.edges, [&](const schedule::edge& each) { return each.from == from && each.to == to; });
    auto of_edge = found == plan_.edges.end() ? "" : " of edge " + to_string(*found);
    return std::string("takes the ") + (is_forward ? "tensor" : "gradient") + of_edge + " from " +
           to_string(outside);
  }

  const plan& plan_;
  schedule::action_graph graph_;
  std::vector<std::vector<int>> needs_;  // [node] nodes that are inside wherever it is
};

std::uint64_t num_actions(const plan& training, const cut& reached) {
  std::uint64_t sum = 0;
  for (std::size_t device = 0; device < reached.devices.size(); ++device)
    sum += reached.devices[device].step * training.actions_of(static_cast<int>(device)).size() +
           reached.devices[device].action;
  return sum;
}

cut after_steps(const plan& training, const cut& from, std::uint64_t count) {
  auto next = step_cut(training, std::ranges::min(from.devices).step + count);
  for (std::size_t device = 0; device < next.devices.size(); ++device)
    next.devices[device] = std::max(next.devices[device], from.devices[device]);
  return next;
}

cut after_microbatch(const closure& relations, const cut& from) {
  using place = std::pair<std::uint64_t, int>;  // step and microbatch
  std::optional<place> first;
  auto place_of = [&](int node) {
    return place(relations.num_inside(from, node), relations.nodes()[index_of(node)].op.microbatch);
  };
  auto num_nodes = static_cast<int>(relations.nodes().size());
  for (int node = 0; node < num_nodes; ++node)
    if (is_of_microbatch(relations.nodes()[index_of(node)].op) && (!first || place_of(node) < *first))
      first = place_of(node);
  auto next = from;
  for (int node = 0; node < num_nodes; ++node)
    if (first && is_of_microbatch(relations.nodes()[index_of(node)].op) && place_of(node) == *first)
      relations.include(next, node, first->first);
  relations.close(next);
  return next;
}

/// Of all devices that which adds the fewest actions, then the one that is furthest behind.
cut after_action(const plan& training, const closure& relations, const cut& from) {
  std::optional<std::pair<std::uint64_t, plan_position>> best;
  cut chosen = from;
  for (int device = 0; device < training.num_job_devices(); ++device) {
    const auto& at = from.devices[index_of(device)];
    if (training.actions_of(device).empty()) continue;
    auto next = from;
    next.devices[index_of(device)] = relations.normal(device, {at.step, at.action + 1});
    relations.close(next);
    std::pair cost(num_actions(training, next), at);
    if (best && *best <= cost) continue;
    best = cost;
    chosen = std::move(next);
  }
  return chosen;
}

}  // namespace

cut step_cut(const plan& training, std::uint64_t step) {
  return {std::vector(index_of(training.num_job_devices()), plan_position{step, 0})};
}

cut gradients_cut(const plan& training, std::uint64_t step) {
  auto wanted = step_cut(training, step);
  for (std::size_t device = 0; device < wanted.devices.size(); ++device) {
    const auto& list = training.actions_of(static_cast<int>(device));
    auto last =
        std::find_if(list.rbegin(), list.rend(), [](const action& op) { return is_of_microbatch(op); });
    wanted.devices[device].action = static_cast<std::uint32_t>(list.rend() - last);
  }
  return smallest_closed_cut(training, wanted);
}

std::optional<open_wait> find_open_wait(const plan& training, const cut& reached) {
  closure relations(training);
  relations.check(reached);
  std::optional<open_wait> found;
  relations.each_open(
      [&](int node, int needed) {
        const auto& inside = relations.nodes()[index_of(node)];
        const auto& outside = relations.nodes()[index_of(needed)];
        found = {relations.num_inside(reached, needed),
                 inside.device,
                 inside.op,
                 outside.device,
                 outside.op,
                 !is_of_microbatch(inside.op) || inside.op == outside.op,
                 relations.text_of(node, needed, reached)};
        return true;
      },
      reached);
  return found;
}

bool is_closed(const plan& training, const cut& reached) { return !find_open_wait(training, reached); }

cut smallest_closed_cut(const plan& training, const cut& wanted) {
  closure relations(training);
  relations.check(wanted);
  auto closed = wanted;
  for (int device = 0; device < training.num_job_devices(); ++device)
    closed.devices[index_of(device)] = relations.normal(device, closed.devices[index_of(device)]);
  relations.close(closed);
  return closed;
}

step_unit step_unit_from(std::string_view text) {
  auto found = std::ranges::find(unit_names, text);
  if (found == unit_names.end())
    throw bad_input("unknown unit of a single step '" + std::string(text) +
                    "'. Choose one of step, microbatch, action");
  return static_cast<step_unit>(found - unit_names.begin());
}

cut advanced_cut(const plan& training, const cut& from, step_unit unit, std::uint64_t count) {
  closure relations(training);
  relations.check(from);
  if (unit == step_unit::step) return after_steps(training, from, count);
  auto at = from;
  for (std::uint64_t i = 0; i < count; ++i)
    at = unit == step_unit::microbatch ? after_microbatch(relations, at)
                                       : after_action(training, relations, at);
  return at;
}

}  // namespace troupe
