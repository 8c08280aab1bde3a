#include <algorithm>

#include "troupe/schedule/generators/order_builder.hpp"
#include "troupe/schedule/schedule_table.hpp"

namespace troupe::schedule {

// 1F1B over the microbatches of all optimizer steps, with an A behind the last backward of each. Before the
// last backward of step t a stage has run `ahead` forwards of what follows. These may be of step t + 1, whose
// weights are there, and not of step t + 2, whose weights the A of step t makes: so at most as many as a step
// has microbatches.
//
// There is no deadlock, since a stage runs no further ahead than those before it. So forward k of a stage
// waits for lower forwards only: on its own device and then, through the backwards before it, on those
// behind.
std::vector<action> pipedream_2bw_order(int stage, const stage_graph& graph, const step_shape& shape) {
  auto [m, count] = shape;
  order_builder order(m * count);
  int ahead = std::min(m, graph.distance_to_loss(stage));
  for (int k = 0; k < ahead; ++k) order.forward(stage);
  for (int step = 0; step < count; ++step) {
    for (int k = 0; k < m; ++k) {
      order.forward(stage);
      order.backward(stage);
    }
    if (step + 1 < count) order.apply(stage, step);
  }
  return order.take();
}

}  // namespace troupe::schedule
