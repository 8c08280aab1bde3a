#pragma once
#include "troupe/nn/graph.hpp"

namespace troupe::nn {

/// Whether the node is a Sequential or a Graph, whose children can be nodes of the graph around it.
bool has_nested_layers(const Graph& model, int node);

/// The same model with the children of node `node` in its place: of node "blocks" the nodes "blocks.0",
/// "blocks.1" and so on. The names of parameters, and all bits, are the same. The modules are shared with
/// `model`. Throws bad_input for a node that has_nested_layers denies, and for one with an nn::TiedLinear
/// within, which finds its weight by a name within.
Graph with_nested_layers(const Graph& model, int node);

/// The model with the layers within all nodes that can be taken apart, and within these.
Graph with_all_nested_layers(Graph model);

}  // namespace troupe::nn
