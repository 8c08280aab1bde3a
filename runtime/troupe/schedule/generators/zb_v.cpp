#include <algorithm>

#include "troupe/schedule/generators/order_builder.hpp"
#include "troupe/schedule/generators/v_shape.hpp"
#include "troupe/schedule/schedule_table.hpp"

namespace troupe::schedule {
namespace {

// Each device has a chunk of the way down, `down`, and one of the way back, `up`. If F, I and W take equally
// long, every device computes without a pause from its first action to its last, and keeps no more
// microbatches than 1F1B on its first device.
//
// The order is that of 2p - 1 microbatches at least; with fewer the others are left out, which takes nothing
// away that another action waits for.
std::vector<action> zb_v_order(int device, const chunk_shape& shape) {
  int p = shape.num_devices;
  int m = std::max(2 * p - 1, shape.num_microbatches);
  int down = device;
  int up = 2 * p - 1 - device;
  order_builder order(shape.num_microbatches);
  auto backward_in_two = [&order](int stage) {
    order.input_gradient(stage);
    order.weight_gradient(stage);
  };
  // Until the first microbatch comes back from the last device.
  for (int k = 0; k < 2 * (p - device) - 1; ++k) order.forward(down);
  for (int k = 0; k < device; ++k) {
    order.forward(up);
    order.forward(down);
  }
  // Until its gradient comes back too.
  for (int k = 0; k < p - device; ++k) {
    order.forward(up);
    backward_in_two(up);
  }
  while (order.forwards(up) < order.forwards(down) || order.forwards(down) < m) {
    if (order.forwards(down) < m) order.forward(down);
    backward_in_two(down);
    order.forward(up);
    backward_in_two(up);
  }
  // No forwards are left: the other devices wait for I, and W fills the time until the next one can begin.
  for (int k = 0; k < device; ++k) {
    order.input_gradient(down);
    order.input_gradient(up);
  }
  for (int k = 0; k < p - device; ++k) backward_in_two(down);
  while (order.weight_gradients(up) < m) order.weight_gradient(up);
  while (order.weight_gradients(down) < m) order.weight_gradient(down);
  return order.take();
}

}  // namespace

const chunked_schedule zb_v_schedule = {.num_chunks = 2, .device_of = v_shape_device, .order = zb_v_order};

}  // namespace troupe::schedule
