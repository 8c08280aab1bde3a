#pragma once
#include "troupe/nn/graph.hpp"

namespace troupe::nn::detail {

/// The same model with the children of node `node` in its place: of node "blocks" the nodes "blocks.0",
/// "blocks.1" and so on. The names of parameters, and all bits, are the same. The modules are shared with
/// `model`.
///
/// Throws bad_input for
/// - a node that is not exactly a Sequential with children or a Graph
/// - a node with a tied weight within, which is found by a name within
/// - a Graph without which gradients would be added in another order. Such a Graph uses a value several times
///   that is used elsewhere too, or returns a value that it was given or uses within, or returns one value
///   twice.
Graph with_nested_layers(const Graph& model, int node);

/// The model with the layers within all nodes that can be taken apart, and within these.
Graph with_all_nested_layers(Graph model);

}  // namespace troupe::nn::detail
