#include "troupe/schedule/action_graph.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Finds the node that makes something: a stage's output, input gradient or weight gradient's input of a
/// microbatch.
class producer_table {
 public:
  producer_table(const plan& drawn, const std::vector<action_graph::node>& nodes)
      : num_stages_(drawn.num_stages), num_microbatches_(drawn.num_microbatches) {
    auto cells = static_cast<std::size_t>(num_stages_) * static_cast<std::size_t>(num_microbatches_);
    forward_.assign(cells, action_graph::none);
    gradient_.assign(cells, action_graph::none);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto& what = nodes[i].what;
      if (!holds(what.stage, what.microbatch) || what.kind == action_kind::weight_gradient) continue;
      auto& made_by =
          (what.kind == action_kind::forward ? forward_ : gradient_)[cell(what.stage, what.microbatch)];
      if (made_by == action_graph::none) made_by = static_cast<int>(i);
    }
  }

  std::array<int, 2> inputs_of(const action& what) const {
    auto [stage, kind, microbatch] = what;
    if (kind == action_kind::forward) return {at(forward_, stage - 1, microbatch), action_graph::none};
    if (kind == action_kind::weight_gradient) return {at(gradient_, stage, microbatch), action_graph::none};
    return {at(forward_, stage, microbatch), at(gradient_, stage + 1, microbatch)};
  }

 private:
  bool holds(int stage, int microbatch) const {
    return stage >= 0 && stage < num_stages_ && microbatch >= 0 && microbatch < num_microbatches_;
  }
  std::size_t cell(int stage, int microbatch) const {
    return static_cast<std::size_t>(stage) * static_cast<std::size_t>(num_microbatches_) +
           static_cast<std::size_t>(microbatch);
  }
  int at(const std::vector<int>& made_by, int stage, int microbatch) const {
    return holds(stage, microbatch) ? made_by[cell(stage, microbatch)] : action_graph::none;
  }

  int num_stages_;
  int num_microbatches_;
  std::vector<int> forward_;   // [stage, microbatch] node that makes the output
  std::vector<int> gradient_;  // [stage, microbatch] node that makes the input gradient
};

}  // namespace

action_graph::action_graph(const plan& drawn) {
  for (int device = 0; device < drawn.num_devices(); ++device) {
    first_of_device.push_back(static_cast<int>(nodes.size()));
    for (const auto& what : drawn.devices[static_cast<std::size_t>(device)]) nodes.push_back({what, device});
  }
  first_of_device.push_back(static_cast<int>(nodes.size()));
  producer_table producers(drawn, nodes);
  for (auto& waiting : nodes) waiting.inputs = producers.inputs_of(waiting.what);
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
    const auto& [what, device, inputs] = walked.nodes[i];
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

}  // namespace troupe
