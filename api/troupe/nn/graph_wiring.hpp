#pragma once
#include <compare>
#include <map>
#include <vector>

namespace troupe::nn {

/// A value within a Graph: output `output` of node `node`, or, of graph_inputs, input `output` of the graph.
struct graph_source {
  int node = 0;
  int output = 0;
  auto operator<=>(const graph_source&) const = default;
};
constexpr int graph_inputs = -1;

/// Input `input` of node `node`.
struct graph_use {
  int node = 0;
  int input = 0;
  auto operator<=>(const graph_use&) const = default;
};

/// How the nodes of a Graph are joined. Each takes values of nodes before it, so there are no cycles.
struct graph_wiring {
  struct node {
    std::vector<graph_source> inputs;
    int num_outputs = 1;
  };
  int num_inputs = 0;
  std::vector<node> nodes;
  std::vector<graph_source> outputs;  ///< where the graph's outputs come from

  int size() const { return static_cast<int>(nodes.size()); }
  const node& at(int index) const { return nodes[static_cast<std::size_t>(index)]; }
};

/// The nodes' uses of each value that has any, ascending; outputs of the graph are no uses.
std::map<graph_source, std::vector<graph_use>> uses_of(const graph_wiring& wiring);

}  // namespace troupe::nn
