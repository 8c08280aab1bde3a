#include <string>

#include "troupe/schedule/generators/order_builder.hpp"
#include "troupe/schedule/generators/v_shape.hpp"
#include "troupe/schedule/schedule_table.hpp"

namespace troupe::schedule {
namespace {

// As in ZB-V each device has a chunk of the way down and one of the way back. In the middle of the step it
// runs a forward of the one beside a backward of the other, so that the communication of each is hidden
// behind the computation of the other. In a plan these two stand one behind the other: a device sends and
// receives beside what it computes anyway. Only at both ends, where there is nothing to run beside, backwards
// are in two.
//
// The steps are those of the authors' code, with their numbers.
std::vector<action> dualpipe_v_order(int device, const chunk_shape& shape) {
  int p = shape.num_devices;
  int m = shape.num_microbatches;
  int down = device;
  int up = 2 * p - 1 - device;
  int behind = p - 1 - device;
  order_builder order(m);
  std::vector<int> pending;  // stages whose W are left, in the order of their I
  auto input_gradient = [&](int stage) {
    order.input_gradient(stage);
    pending.push_back(stage);
  };
  auto weight_gradient = [&] {
    order.weight_gradient(pending.front());
    pending.erase(pending.begin());
  };
  for (int k = 0; k < 2 * behind; ++k) order.forward(down);  // 1
  for (int k = 0; k <= device; ++k) {                        // 2
    order.forward(down);
    order.forward(up);
  }
  for (int k = 0; k < behind; ++k) {  // 3
    input_gradient(up);
    weight_gradient();
    order.forward(up);
  }
  for (int k = 0; k < m - 2 * p + device + 1; ++k) {  // 4
    order.forward(down);
    order.backward(up);
    order.forward(up);
    order.backward(down);
  }
  for (int k = 0; k < behind; ++k) {  // 5
    order.backward(up);
    order.forward(up);
    order.backward(down);
  }
  for (int k = 0; k <= device; ++k) {  // 6: in two from the middle on
    if (2 * k > device)
      input_gradient(up);
    else
      order.backward(up);
    if (2 * k >= device)
      input_gradient(down);
    else
      order.backward(down);
  }
  for (int k = 0; k < behind; ++k) {  // 7
    weight_gradient();
    input_gradient(down);
  }
  while (!pending.empty()) weight_gradient();  // 8
  return order.take();
}

std::string dualpipe_v_objection(const chunk_shape& shape) {
  if (shape.num_microbatches >= shape.num_stages()) return {};
  return "at least as many microbatches as stages. Use " + std::to_string(shape.num_stages()) + " or more";
}

}  // namespace

const chunked_schedule dualpipe_v_schedule = {.num_chunks = 2,
                                              .device_of = v_shape_device,
                                              .order = dualpipe_v_order,
                                              .objection = dualpipe_v_objection};

}  // namespace troupe::schedule
