#include <algorithm>

#include "troupe/schedule/generators/order_builder.hpp"
#include "troupe/schedule/schedule_table.hpp"

namespace troupe::schedule {
namespace {

// 1F1B with the backward in two. I, which the stage before waits for, comes as early as B did or earlier. W,
// which nothing waits for, fills the time in which a stage would wait for the next gradient.
//
// A stage runs `ahead` forwards, then F and I alternate. Its W come `delay` rounds after their I, so that it
// has that many left when it has run its last I.
//
// Neither ZB-H1 nor ZB-H2 has a deadlock. F and I are in the order of 1F1B, or with twice as many ahead in
// that of 2k - 2d for forward k and 2k + 2d + 1 for input gradient k. In both orders all that a stage waits
// for comes before. A W waits for an I of its own stage only.
std::vector<action> alternate(int stage, int ahead, int delay, int num_microbatches) {
  order_builder order(num_microbatches);
  for (int k = 0; k < std::min(ahead, num_microbatches); ++k) order.forward(stage);
  for (int k = 0; k < num_microbatches; ++k) {
    order.forward(stage);
    order.input_gradient(stage);
    if (k >= delay) order.weight_gradient(stage);
  }
  while (order.weight_gradients(stage) < num_microbatches) order.weight_gradient(stage);
  return order.take();
}

/// How many stages are before this one on the longest way to the loss, if it lies on it.
int depth(int stage, const stage_graph& graph) {
  return graph.longest_distance_to_loss() - graph.distance_to_loss(stage);
}

}  // namespace

// As many microbatches are between F and W on each of p stages: p.
std::vector<action> zb_h1_order(int stage, const stage_graph& graph, int num_microbatches) {
  return alternate(stage, graph.distance_to_loss(stage), depth(stage, graph), num_microbatches);
}

// 2p - 1 microbatches between F and W. The forwards run ahead fill the time in which ZB-H1 waits for the
// first gradient.
std::vector<action> zb_h2_order(int stage, const stage_graph& graph, int num_microbatches) {
  return alternate(stage, 2 * graph.distance_to_loss(stage), 2 * depth(stage, graph), num_microbatches);
}

}  // namespace troupe::schedule
