#include "troupe/schedule/generators/order_builder.hpp"
#include "troupe/schedule/schedule_table.hpp"

namespace troupe::schedule {
namespace {

// As interleaved 1F1B places them. A device runs all microbatches of one stage before those of its next, so
// that each stage's weights are used twice a step, and its gradients are complete before the next stage has
// any.
std::vector<action> looped_order(int device, const chunk_shape& shape) {
  auto [p, v, m] = shape;
  order_builder order(m);
  for (int chunk = 0; chunk < v; ++chunk)
    for (int k = 0; k < m; ++k) order.forward(chunk * p + device);
  for (int chunk = v - 1; chunk >= 0; --chunk)
    for (int k = 0; k < m; ++k) order.backward(chunk * p + device);
  return order.take();
}

}  // namespace

const chunked_schedule looped_bfs_schedule = {.device_of = round_robin_device, .order = looped_order};

}  // namespace troupe::schedule
