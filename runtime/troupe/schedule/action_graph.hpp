#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "troupe/schedule/plan.hpp"

namespace troupe::schedule {

/// The dependency graph of a plan: every action depends on the previous one of its device and on its inputs.
///
/// | action | waits for |
/// |---|---|
/// | F | F of the stages that its stage has edges from |
/// | B, I | F of its stage; B or I of the stages that its stage has edges to |
/// | W | I of its stage |
/// | R | what each of the other stages that take part does before its own R |
/// | G | what the devices of the other lanes along its axis do before theirs |
/// | the first F, B or I after a U | the Us of the other lanes along its axis |
/// | what lanes run together (plan::joint_axes) | also all that those of the other lanes wait for |
/// | U, S, A | nothing else |
///
/// An input that the plan lacks is left out; of an action that occurs twice the first one counts.
struct action_graph {
  static constexpr int none = -1;
  struct node {
    action op;
    int device = 0;           ///< of the job, see plan::job_device
    std::vector<int> inputs;  ///< nodes; those that are `none` are not waited for
  };
  /// What goes from lane to lane while a device does other things: it leaves when `start` has ended, and
  /// `done` waits for it.
  ///
  /// | of a | start | done |
  /// |---|---|---|
  /// | G | what its stage does before, within which buckets leave if the G is over dp | the G |
  /// | U | the U | the next F, B or I of its stage |
  struct transfer {
    action op;  ///< G or U
    int start = none, done = none;
  };
  /// Throws bad_input if the plan's edges are no stage_graph.
  explicit action_graph(const plan& drawn);

  std::vector<node> nodes;           ///< device after device, in program order
  std::vector<int> first_of_device;  ///< [num_job_devices + 1] node
  /// Nodes that run together (plan::lanes_together): the Rs of each reduction, the Gs of a stage along their
  /// axis, and the joint Fs, Bs, Is and Ws.
  std::vector<std::vector<int>> together;
  std::vector<transfer> transfers;  ///< ascending by start; none in a plan of one lane
};

/// Visits the nodes of a graph in topological order (Kahn's algorithm). Nodes on or behind a cycle are never
/// visited.
class graph_walk {
 public:
  explicit graph_walk(const action_graph& walked);
  /// The next node; none when all have been visited or the rest depends on a cycle.
  std::optional<int> next();
  bool visited(int node) const { return visited_[static_cast<std::size_t>(node)]; }
  /// Removes the edge from `input`, which has not been visited, to `node`.
  void forget(int node, int input);

 private:
  std::vector<int> waits_for_;             // [node] how many
  std::vector<std::vector<int>> waiters_;  // [node]
  std::vector<bool> visited_;              // [node]
  std::vector<int> ready_;
};

}  // namespace troupe::schedule
