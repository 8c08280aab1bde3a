#pragma once
#include <string>
#include <vector>

#include "troupe/nn/graph.hpp"

namespace troupe {

/// Nodes [first, last) of a graph, in the order in which they were added: the layers of a chain.
struct stage_range {
  int first = 0;
  int last = 0;
  bool operator==(const stage_range&) const = default;
};

/// Partitions a model into contiguous stages such that the cost of the largest stage is minimal. Every stage
/// begins with a layer that has parameters (the first stage also gets the layers before it), so that an
/// activation stays with the layer before it. Throws bad_input if stages < 1 or there are more stages than
/// layers with parameters.
std::vector<stage_range> partition_into_stages(const nn::Graph& model, int stages);

/// The most stages that partition_into_stages makes of a model: its layers with parameters, at least 1.
int most_stages(const nn::Graph& model);

/// The stages that begin with these nodes; the first one, which begins with the first node, is not named.
/// Throws bad_input, saying what to do, for an unknown name, names that are not in the order of the nodes,
/// and a stage without parameters.
std::vector<stage_range> partition_at(const nn::Graph& model, const std::vector<std::string>& first_nodes);

}  // namespace troupe
