#include "troupe/schedule/checks/plan_checks.hpp"

#include <algorithm>

namespace troupe::schedule {
namespace {

/// Once a walk is stuck, the first unvisited action of each device, its head, waits for data: the actions
/// before it are done. The device that makes the data is stuck too, at its own head. Going from head to head
/// in this way must come back to a device seen before, and those in between are a cycle.
class cycle_search {
 public:
  explicit cycle_search(action_graph& graph) : graph_(graph), walk_(graph), heads_(graph.first_of_device) {}

  std::vector<std::string> run() {
    std::vector<std::string> cycles;
    for (;;) {
      while (walk_.next()) continue;
      int device = stuck_device();
      if (device == action_graph::none) return cycles;
      cycles.push_back(take_cycle(device));
    }
  }

 private:
  /// A device whose actions are not all visited. Moves every head to its device's first unvisited action.
  int stuck_device() {
    int stuck = action_graph::none;
    for (std::size_t device = 0; device + 1 < graph_.first_of_device.size(); ++device) {
      while (heads_[device] < graph_.first_of_device[device + 1] && walk_.visited(heads_[device]))
        ++heads_[device];
      bool finished = heads_[device] == graph_.first_of_device[device + 1];
      if (!finished && stuck == action_graph::none) stuck = static_cast<int>(device);
    }
    return stuck;
  }

  std::string take_cycle(int device) {
    std::vector<int> path;
    while (std::find(path.begin(), path.end(), device) == path.end()) {
      path.push_back(device);
      device = node(*missing_input(device)).device;
    }
    path.erase(path.begin(), std::find(path.begin(), path.end(), device));
    std::string sentence;
    for (int each : path) sentence += (sentence.empty() ? "" : "; ") + describe(each);
    for (int each : path)
      while (auto* input = missing_input(each)) drop(each, *input);
    return "deadlock: " + sentence;
  }

  void drop(int device, int& input) {
    walk_.forget(head(device), input);
    input = action_graph::none;
  }

  std::string describe(int device) {
    int input = *missing_input(device);
    int other = node(input).device;
    auto text = to_string(node(head(device)).op) + " waits for " + to_string(node(input).op);
    if (input == head(other)) return text;
    return text + ", which device " + std::to_string(other) + " only does after " +
           to_string(node(head(other)).op);
  }

  /// The first input of a device's head that has not run, or null; a head that is stuck has one.
  int* missing_input(int device) {
    auto& inputs = node(head(device)).inputs;
    auto found = std::ranges::find_if(
        inputs, [this](int input) { return input != action_graph::none && !walk_.visited(input); });
    return found == inputs.end() ? nullptr : &*found;
  }

  int head(int device) const { return heads_[static_cast<std::size_t>(device)]; }
  action_graph::node& node(int index) { return graph_.nodes[static_cast<std::size_t>(index)]; }

  action_graph& graph_;
  graph_walk walk_;
  std::vector<int> heads_;  // [device] first node not visited
};

}  // namespace

std::vector<std::string> find_cycles(action_graph graph) { return cycle_search(graph).run(); }

}  // namespace troupe::schedule
