#include "troupe/schedule/generators/order_builder.hpp"
#include "troupe/schedule/schedule_table.hpp"

namespace troupe::schedule {

std::vector<action> gpipe_order(int stage, const stage_graph&, int num_microbatches) {
  order_builder order(num_microbatches);
  for (int k = 0; k < num_microbatches; ++k) order.forward(stage);
  for (int k = 0; k < num_microbatches; ++k) order.backward(stage);
  return order.take();
}

std::vector<action> forward_only_order(int stage, const stage_graph&, int num_microbatches) {
  order_builder order(num_microbatches);
  for (int k = 0; k < num_microbatches; ++k) order.forward(stage);
  return order.take();
}

}  // namespace troupe::schedule
