#pragma once
#include <vector>

#include "troupe/nn/detail/graph_segment.hpp"
#include "troupe/pipeline/partition.hpp"
#include "troupe/schedule/stage_graph.hpp"

namespace troupe::detail {

/// What one stage computes, and the values that it takes from other stages and gives to them.
struct stage_values {
  stage_range nodes;
  bool takes_samples = false;  ///< `inputs` is the model's input alone, which is no port
  std::vector<nn::detail::given_value> inputs = {};  ///< [input ports]
  /// [output ports]; of the last stage the model's output, which is no port.
  std::vector<nn::graph_source> outputs = {};
};

/// A model with one input and one output, cut into stages, and the edges between them.
///
/// A value that other stages use has one output port, and one edge to each of these stages, past those that
/// do not use it. Its gradient is the sum of the gradients of its uses, the last use first, whatever the cut:
///
/// | stage | gradients of its uses |
/// |---|---|
/// | the last that uses the value | adds them up, and sends the sum |
/// | between, with several uses | has an edge for each use, so they are added one after the other |
/// | that computes the value | adds its own uses at the end |
///
/// A stage that uses nothing but the model's input takes the samples itself.
struct model_cut {
  std::vector<stage_values> stages;
  std::vector<schedule::edge> edges;  ///< plan::edges
};

/// `partition` covers the nodes, in order.
model_cut cut_model(const nn::graph_wiring& wiring, const std::vector<stage_range>& partition);

}  // namespace troupe::detail
