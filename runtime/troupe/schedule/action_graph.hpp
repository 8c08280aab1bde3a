#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "troupe/schedule/plan.hpp"

namespace troupe {

/// Who waits for whom in a plan: every action waits for the one before it on its device and for its inputs.
///
/// F waits for F of the stage before; B and I for their stage's F and for B or I of the stage after; W for
/// its stage's I; R for what each of the other stages that take part does before its own R. An input that the
/// plan lacks is left out; of an action that occurs twice the first one counts.
struct action_graph {
  static constexpr int none = -1;
  struct node {
    action what;
    int device = 0;
    std::vector<int> inputs;  ///< nodes; those that are `none` are not waited for
  };
  explicit action_graph(const plan& drawn);

  std::vector<node> nodes;           ///< device after device, in program order
  std::vector<int> first_of_device;  ///< [num_devices + 1] node
};

/// Visits the nodes of a graph, each after all it waits for. What never comes up waits in a circle.
class graph_walk {
 public:
  explicit graph_walk(const action_graph& walked);
  /// The next node; none when all have been visited or the rest waits in a circle.
  std::optional<int> next();
  bool visited(int node) const { return visited_[static_cast<std::size_t>(node)]; }
  /// From now on `node` does not wait for `input`, which has not been visited.
  void forget(int node, int input);

 private:
  std::vector<int> waits_for_;             // [node] how many
  std::vector<std::vector<int>> waiters_;  // [node]
  std::vector<bool> visited_;              // [node]
  std::vector<int> ready_;
};

}  // namespace troupe
