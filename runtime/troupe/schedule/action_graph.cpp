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
    auto [stage, kind, microbatch] = op;
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
      auto [stage, kind, number] = nodes[i].op;
      auto before = last_of_stage.find(stage);
      if (kind == action_kind::reduce_gradient && holds(number) && before != last_of_stage.end())
        before_[static_cast<std::size_t>(number)].emplace(stage, before->second);
      last_of_stage[stage] = static_cast<int>(i);
    }
  }

  std::vector<int> inputs_of(const action& op) const {
    std::vector<int> inputs;
    if (!holds(op.microbatch)) return inputs;
    auto number = static_cast<std::size_t>(op.microbatch);
    for (int stage : reductions_[number]) {
      auto found = before_[number].find(stage);
      if (stage != op.stage && found != before_[number].end()) inputs.push_back(found->second);
    }
    return inputs;
  }

 private:
  bool holds(int number) const { return number >= 0 && number < static_cast<int>(reductions_.size()); }

  const std::vector<std::vector<int>>& reductions_;
  std::vector<std::map<int, int>> before_;  // [reduction] stage -> node
};

/// The graph of one replica.
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

/// Adds the other replicas, each with the nodes of the first one in its order.
void repeat_for_replicas(const plan& drawn, action_graph& graph) {
  auto size = static_cast<int>(graph.nodes.size());
  auto num_groups = graph.together.size();
  graph.first_of_device.pop_back();
  for (int replica = 1; replica < drawn.num_replicas; ++replica) {
    bool runs = replica < drawn.num_running_replicas();
    auto shift = runs ? replica * size : static_cast<int>(graph.nodes.size());
    for (int device = 0; device < drawn.num_devices(); ++device)
      graph.first_of_device.push_back(runs ? graph.first_of_device[static_cast<std::size_t>(device)] + shift
                                           : shift);
    for (int i = 0; runs && i < size; ++i) {
      auto node = graph.nodes[static_cast<std::size_t>(i)];
      node.device = drawn.job_device(replica, node.device);
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

/// Lets the node `first` of replica 0 run together with those of the other replicas, which wait for
/// `inputs` [replica] besides their own.
void join_replicas(const plan& drawn, int size, int first, const std::vector<std::vector<int>>& inputs,
                   action_graph& graph) {
  auto& members = graph.together.emplace_back();
  auto device = static_cast<std::size_t>(graph.nodes[static_cast<std::size_t>(first)].device);
  bool is_first_of_device = graph.first_of_device[device] == first;
  for (int replica = 0; replica < drawn.num_running_replicas(); ++replica) {
    int node = first + replica * size;
    members.push_back(node);
    auto& waited_for = graph.nodes[static_cast<std::size_t>(node)].inputs;
    for (int other = 0; other < drawn.num_running_replicas(); ++other) {
      if (other == replica) continue;
      if (!is_first_of_device) waited_for.push_back(first + other * size - 1);
      std::ranges::copy(inputs[static_cast<std::size_t>(other)], std::back_inserter(waited_for));
    }
  }
}

/// All that replicas run together.
void join_replicas(const plan& drawn, int size, action_graph& graph) {
  for (int node = 0; node < size; ++node) {
    const auto& op = graph.nodes[static_cast<std::size_t>(node)].op;
    if (op.kind != action_kind::all_reduce && !drawn.is_synchronized(op)) continue;
    std::vector<std::vector<int>> inputs;  // before any is added
    for (int member = node; member < drawn.num_running_replicas() * size; member += size)
      inputs.push_back(graph.nodes[static_cast<std::size_t>(member)].inputs);
    join_replicas(drawn, size, node, inputs, graph);
  }
}

}  // namespace

action_graph::action_graph(const plan& drawn) {
  draw_one(drawn, *this);
  auto size = static_cast<int>(nodes.size());
  if (drawn.num_replicas > 1) repeat_for_replicas(drawn, *this);
  if (drawn.num_running_replicas() > 1) join_replicas(drawn, size, *this);
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
