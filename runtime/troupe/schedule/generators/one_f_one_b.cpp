#include <algorithm>

#include "troupe/schedule/generators/order_builder.hpp"
#include "troupe/schedule/schedule_table.hpp"

namespace troupe::schedule {

// A stage runs some forwards ahead, then alternates forward and backward while there are forwards, then
// drains. It runs as many ahead as a microbatch takes hops to the loss on the longest way, which is about
// when its gradient comes back.
//
// That keeps 1F1B free of deadlock in every graph. Give forward k of a stage whose distance to the loss is d
// the number 2k - d, and its backward k the number 2k + d + 1. Then the numbers of all that a stage does
// ascend, and all that an action waits for has a lower number.
std::vector<action> one_f_one_b_order(int stage, const stage_graph& graph, int num_microbatches) {
  order_builder order(num_microbatches);
  int ahead = std::min(num_microbatches, graph.distance_to_loss(stage));
  for (int k = 0; k < ahead; ++k) order.forward(stage);
  for (int k = 0; k < num_microbatches; ++k) {
    order.forward(stage);
    order.backward(stage);
  }
  return order.take();
}

}  // namespace troupe::schedule
