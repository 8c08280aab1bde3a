#include "troupe/schedule/action_graph.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

namespace troupe::schedule {
namespace {

bool makes_tensors(action_kind kind) {
  return kind == action_kind::forward || kind == action_kind::backward || kind == action_kind::input_gradient;
}

/// [num_stages] the stages at the other ends of each stage's inputs or outputs, each once.
struct neighbours {
  explicit neighbours(const stage_graph& graph) {
    for (int stage = 0; stage < graph.num_stages(); ++stage) {
      auto& own_senders = senders.emplace_back();
      for (const auto& each : graph.inputs_of(stage)) own_senders.insert(each.from);
      auto& own_receivers = receivers.emplace_back();
      for (const auto& each : graph.outputs_of(stage)) own_receivers.insert(each.to);
    }
  }
  std::vector<std::set<int>> senders, receivers;
};

/// Finds the nodes that make what an action computes with: outputs and input gradients of the stages around
/// it.
class producer_table {
 public:
  producer_table(const plan& drawn, const std::vector<action_graph::node>& nodes)
      : num_stages_(drawn.num_stages),
        num_microbatches_(drawn.num_microbatches),
        around_(stage_graph(drawn.num_stages, drawn.edges)) {
    auto cells = static_cast<std::size_t>(num_stages_) * static_cast<std::size_t>(num_microbatches_);
    forward_.assign(cells, action_graph::none);
    gradient_.assign(cells, action_graph::none);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto& op = nodes[i].op;
      if (!holds(op.stage, op.microbatch) || !makes_tensors(op.kind)) continue;
      auto& made_by = (op.kind == action_kind::forward ? forward_ : gradient_)[cell(op.stage, op.microbatch)];
      if (made_by == action_graph::none) made_by = static_cast<int>(i);
    }
  }

  /// Of an action that is neither R nor G.
  std::vector<int> inputs_of(const action& op) const {
    auto [stage, kind, microbatch, axis] = op;
    if (!is_of_microbatch(op) || !holds(stage, microbatch)) return {};
    if (kind == action_kind::weight_gradient) return {gradient_[cell(stage, microbatch)]};
    auto at = static_cast<std::size_t>(stage);
    std::vector<int> inputs;
    if (kind == action_kind::forward) {
      for (int sender : around_.senders[at]) inputs.push_back(forward_[cell(sender, microbatch)]);
    } else {
      inputs.push_back(forward_[cell(stage, microbatch)]);
      for (int receiver : around_.receivers[at]) inputs.push_back(gradient_[cell(receiver, microbatch)]);
    }
    return inputs;
  }

 private:
  bool holds(int stage, int microbatch) const {
    return stage >= 0 && stage < num_stages_ && microbatch >= 0 && microbatch < num_microbatches_;
  }
  std::size_t cell(int stage, int microbatch) const {
    return static_cast<std::size_t>(stage) * static_cast<std::size_t>(num_microbatches_) +
           static_cast<std::size_t>(microbatch);
  }

  int num_stages_;
  int num_microbatches_;
  neighbours around_;
  std::vector<int> forward_;   // [stage, microbatch] node that makes the output
  std::vector<int> gradient_;  // [stage, microbatch] node that makes the input gradient
};

/// The nodes that give the shares of each stage: what the stage does just before its R.
class share_table {
 public:
  share_table(const plan& drawn, const std::vector<action_graph::node>& nodes)
      : reductions_(drawn.reductions), before_(drawn.reductions.size()) {
    std::map<int, int> last_of_stage;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      auto [stage, kind, number, axis] = nodes[i].op;
      auto before = last_of_stage.find(stage);
      if (kind == action_kind::reduce_gradient && holds(number) && before != last_of_stage.end())
        before_[static_cast<std::size_t>(number)].emplace(stage, before->second);
      if (!is_of_storage(kind)) last_of_stage[stage] = static_cast<int>(i);
    }
  }

  std::vector<int> inputs_of(const action& op) const {
    std::vector<int> inputs;
    if (!holds(op.microbatch)) return inputs;
    auto number = static_cast<std::size_t>(op.microbatch);
    for (int stage : reductions_[number].stages) {
      auto found = before_[number].find(stage);
      if (stage != op.stage && found != before_[number].end()) inputs.push_back(found->second);
    }
    return inputs;
  }

 private:
  bool holds(int number) const { return number >= 0 && number < static_cast<int>(reductions_.size()); }

  const std::vector<reduction>& reductions_;
  std::vector<std::map<int, int>> before_;  // [reduction] stage -> node
};

/// The graph of one lane.
void draw_one(const plan& drawn, action_graph& graph) {
  auto& nodes = graph.nodes;
  auto& first_of_device = graph.first_of_device;
  for (int device = 0; device < drawn.num_devices(); ++device) {
    first_of_device.push_back(static_cast<int>(nodes.size()));
    for (const auto& op : drawn.devices[static_cast<std::size_t>(device)]) nodes.push_back({op, device, {}});
  }
  first_of_device.push_back(static_cast<int>(nodes.size()));
  producer_table producers(drawn, nodes);
  share_table shares(drawn, nodes);
  for (auto& waiting : nodes)
    waiting.inputs = waiting.op.kind == action_kind::reduce_gradient ? shares.inputs_of(waiting.op)
                                                                     : producers.inputs_of(waiting.op);
  std::map<int, std::vector<int>> members;  // of each reduction
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i].op.kind == action_kind::reduce_gradient)
      members[nodes[i].op.microbatch].push_back(static_cast<int>(i));
  for (auto& [number, all] : members) graph.together.push_back(std::move(all));
}

/// Adds the other lanes, each with the nodes of the first one in its order.
void repeat_for_lanes(const plan& drawn, action_graph& graph) {
  auto size = static_cast<int>(graph.nodes.size());
  auto num_groups = graph.together.size();
  graph.first_of_device.pop_back();
  for (int lane = 1; lane < drawn.mesh.num_lanes(); ++lane) {
    bool runs = lane < drawn.num_running_lanes();
    auto shift = runs ? lane * size : static_cast<int>(graph.nodes.size());
    for (int device = 0; device < drawn.num_devices(); ++device)
      graph.first_of_device.push_back(runs ? graph.first_of_device[static_cast<std::size_t>(device)] + shift
                                           : shift);
    for (int i = 0; runs && i < size; ++i) {
      auto node = graph.nodes[static_cast<std::size_t>(i)];
      node.device = drawn.job_device(lane, node.device);
      for (auto& input : node.inputs) input = input == action_graph::none ? input : input + shift;
      graph.nodes.push_back(std::move(node));
    }
    for (std::size_t group = 0; runs && group < num_groups; ++group) {
      auto members = graph.together[group];
      for (auto& member : members) member += shift;
      graph.together.push_back(std::move(members));
    }
  }
  graph.first_of_device.push_back(static_cast<int>(graph.nodes.size()));
}

/// Connects lanes whose nodes are numbered alike: node i of lane 0 is node i + lane * size of a lane.
class lane_joiner {
 public:
  lane_joiner(const plan& drawn, int size, action_graph& graph) : drawn_(drawn), size_(size), graph_(graph) {}

  void run() {
    for (int node = 0; node < size_; ++node) {
      const auto& op = at(node).op;
      if (op.kind == action_kind::unshard)
        for_each_group({op.axis}, [&](const std::vector<int>& lanes) { join_unshards(node, lanes); });
      bool is_joint = op.kind == action_kind::all_reduce || !drawn_.joint_axes(op).empty();
      if (is_joint)
        for_each_group(axes_of(op), [&](const std::vector<int>& lanes) { join_nodes(node, lanes); });
    }
    join_reductions();
    add_transfers();
  }

 private:
  action_graph::node& at(int node) { return graph_.nodes[static_cast<std::size_t>(node)]; }
  int in_lane(int node, int lane) const { return node + lane * size_; }

  std::vector<layout::mesh_axis> axes_of(const action& op) const {
    return op.kind == action_kind::all_reduce ? std::vector{op.axis} : drawn_.joint_axes(op);
  }

  /// Groups of several lanes that run the plan.
  template <class Body>
  void for_each_group(const std::vector<layout::mesh_axis>& axes, Body body) const {
    for (int lane = 0; lane < drawn_.num_running_lanes(); ++lane) {
      auto lanes = drawn_.mesh.lanes_along(axes, lane);
      std::erase_if(lanes, [this](int other) { return other >= drawn_.num_running_lanes(); });
      if (lanes.size() > 1 && lanes.front() == lane) body(lanes);
    }
  }

  /// They run together: each waits for what the others wait for, with what their devices do before.
  void join_nodes(int node, const std::vector<int>& lanes) {
    auto& members = graph_.together.emplace_back();
    auto device = static_cast<std::size_t>(at(node).device);
    bool is_first_of_device = graph_.first_of_device[device] == node;
    std::vector<std::vector<int>> inputs;  // before any is added
    for (int lane : lanes) {
      members.push_back(in_lane(node, lane));
      inputs.push_back(at(members.back()).inputs);
    }
    for (std::size_t one = 0; one < lanes.size(); ++one)
      for (std::size_t other = 0; other < lanes.size(); ++other) {
        if (one == other) continue;
        auto& waited_for = at(members[one]).inputs;
        if (!is_first_of_device) waited_for.push_back(members[other] - 1);
        std::ranges::copy(inputs[other], std::back_inserter(waited_for));
      }
  }

  /// What waits for a U.
  static bool waits_for_shards(action_kind kind) {
    return reads_parameters(kind) || kind == action_kind::reshard;
  }

  /// The first action that reads the parameters, or an S before any, waits for the shards of all, and so does
  /// what the stage does after it until the S.
  void join_unshards(int node, const std::vector<int>& lanes) {
    auto end = graph_.first_of_device[static_cast<std::size_t>(at(node).device) + 1];
    auto first = next_of_stage(node, waits_for_shards);
    if (first == action_graph::none) return;
    for (int next = first; next < end; ++next) {
      auto [stage, kind, number, axis] = at(next).op;
      if (stage != at(node).op.stage) continue;
      if (!is_of_microbatch(at(next).op) && kind != action_kind::reshard) break;
      for (int lane : lanes)
        for (int other : lanes)
          if (lane != other) at(in_lane(next, lane)).inputs.push_back(in_lane(node, other));
      if (kind == action_kind::reshard) break;
    }
  }

  /// Those along axes: the groups of several lanes become one, and each waits for the partials of all.
  void join_reductions() {
    std::map<int, std::vector<int>> of_lane;  // [reduction] nodes of lane 0
    for (int node = 0; node < size_; ++node)
      if (at(node).op.kind == action_kind::reduce_gradient) of_lane[at(node).op.microbatch].push_back(node);
    for (const auto& [number, nodes] : of_lane) {
      if (number < 0 || number >= static_cast<int>(drawn_.reductions.size())) continue;
      const auto& axes = drawn_.reductions[static_cast<std::size_t>(number)].axes;
      for_each_group(axes, [&](const std::vector<int>& lanes) { join_reduction(nodes, lanes); });
    }
  }

  void join_reduction(const std::vector<int>& nodes, const std::vector<int>& lanes) {
    std::erase_if(graph_.together, [&](const std::vector<int>& group) {
      return std::ranges::any_of(lanes,
                                 [&](int lane) { return group.front() == in_lane(nodes.front(), lane); });
    });
    auto& members = graph_.together.emplace_back();
    std::vector<int> partials;  // [nodes] what gives it in lane 0
    for (int node : nodes) partials.push_back(previous_of_stage(node));
    for (int lane : lanes)
      for (int node : nodes) {
        members.push_back(in_lane(node, lane));
        auto& waited_for = at(members.back()).inputs;
        for (int other : lanes)
          for (int partial : partials)
            if (other != lane && partial != action_graph::none) waited_for.push_back(in_lane(partial, other));
      }
  }

  void add_transfers() {
    for (int lane = 0; lane < drawn_.num_running_lanes(); ++lane)
      for (int node = 0; node < size_; ++node) {
        const auto& op = at(node).op;
        bool goes_to_others = drawn_.mesh.size_of(op.axis) > 1;
        action_graph::transfer found{op, node, node};
        if (op.kind == action_kind::all_reduce)
          found.start = previous_of_stage(node);
        else if (op.kind == action_kind::unshard)
          found.done = next_of_stage(node, waits_for_shards);
        else
          continue;
        if (!goes_to_others || found.start == action_graph::none || found.done == action_graph::none)
          continue;
        graph_.transfers.push_back({op, in_lane(found.start, lane), in_lane(found.done, lane)});
      }
    std::ranges::stable_sort(graph_.transfers, {}, &action_graph::transfer::start);
  }

  /// In the same list, in lane 0.
  template <class Wanted>
  int next_of_stage(int node, Wanted is_wanted) {
    auto end = graph_.first_of_device[static_cast<std::size_t>(at(node).device) + 1];
    for (int next = node + 1; next < end; ++next)
      if (at(next).op.stage == at(node).op.stage && is_wanted(at(next).op.kind)) return next;
    return action_graph::none;
  }
  int previous_of_stage(int node) {
    auto first = graph_.first_of_device[static_cast<std::size_t>(at(node).device)];
    for (int before = node - 1; before >= first; --before)
      if (at(before).op.stage == at(node).op.stage && !is_of_storage(at(before).op.kind)) return before;
    return action_graph::none;
  }

  const plan& drawn_;
  int size_;
  action_graph& graph_;
};

}  // namespace

action_graph::action_graph(const plan& drawn) {
  draw_one(drawn, *this);
  auto size = static_cast<int>(nodes.size());
  if (drawn.mesh.num_lanes() > 1) repeat_for_lanes(drawn, *this);
  if (drawn.num_running_lanes() > 1) lane_joiner(drawn, size, *this).run();
}

graph_walk::graph_walk(const action_graph& walked)
    : waits_for_(walked.nodes.size(), 0),
      waiters_(walked.nodes.size()),
      visited_(walked.nodes.size(), false) {
  for (std::size_t i = 0; i < walked.nodes.size(); ++i) {
    auto add = [this, i](int awaited) {
      ++waits_for_[i];
      waiters_[static_cast<std::size_t>(awaited)].push_back(static_cast<int>(i));
    };
    const auto& [op, device, inputs] = walked.nodes[i];
    bool is_first = walked.first_of_device[static_cast<std::size_t>(device)] == static_cast<int>(i);
    if (!is_first) add(static_cast<int>(i) - 1);
    for (int input : inputs)
      if (input != action_graph::none) add(input);
    if (waits_for_[i] == 0) ready_.push_back(static_cast<int>(i));
  }
}

std::optional<int> graph_walk::next() {
  if (ready_.empty()) return {};
  int node = ready_.back();
  ready_.pop_back();
  visited_[static_cast<std::size_t>(node)] = true;
  for (int waiter : waiters_[static_cast<std::size_t>(node)])
    if (--waits_for_[static_cast<std::size_t>(waiter)] == 0) ready_.push_back(waiter);
  return node;
}

void graph_walk::forget(int node, int input) {
  auto& waiters = waiters_[static_cast<std::size_t>(input)];
  waiters.erase(std::find(waiters.begin(), waiters.end(), node));
  if (--waits_for_[static_cast<std::size_t>(node)] == 0) ready_.push_back(node);
}

}  // namespace troupe::schedule
