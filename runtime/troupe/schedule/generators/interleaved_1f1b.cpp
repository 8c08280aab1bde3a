#include <algorithm>

#include "troupe/schedule/generators/order_builder.hpp"
#include "troupe/schedule/schedule_table.hpp"

namespace troupe::schedule {

int round_robin_device(int stage, int num_devices) { return stage % num_devices; }

namespace {

// Device d of p has the stages d, d + p, d + 2p, ... A microbatch goes round the devices once for each chunk,
// so filling and draining the pipeline takes as long as the chunks are short.
//
// The device runs p microbatches of its first chunk, the same ones of its second, and so on; then the next p.
// Backwards come in the same way, from the last chunk to the first. It runs as many forwards ahead as there
// are before the first microbatch is through all chunks, and two more for each device behind it. One of these
// is for the way of a microbatch to the last device, one for that of its gradient back.
std::vector<action> interleaved_order(int device, const chunk_shape& shape) {
  auto [p, v, m] = shape;
  auto chunk = [p, v](int position) { return position / p % v; };
  auto forward_stage = [&](int position) { return chunk(position) * p + device; };
  auto backward_stage = [&](int position) { return (v - 1 - chunk(position)) * p + device; };
  int total = v * m;
  int ahead = std::min(total, (v - 1) * p + 2 * (p - 1 - device));
  order_builder order(m);
  for (int k = 0; k < ahead; ++k) order.forward(forward_stage(k));
  for (int k = 0; k < total; ++k) {
    if (ahead + k < total) order.forward(forward_stage(ahead + k));
    order.backward(backward_stage(k));
  }
  return order.take();
}

std::string interleaved_objection(const chunk_shape& shape) {
  auto [p, v, m] = shape;
  if (m % p == 0) return {};
  int below = m / p * p;
  return "groups of as many microbatches as devices, so " + std::to_string(p) +
         " has to divide their number. Use " + (below == 0 ? "" : std::to_string(below) + " or ") +
         std::to_string(below + p);
}

}  // namespace

const chunked_schedule interleaved_1f1b_schedule = {
    .device_of = round_robin_device, .order = interleaved_order, .objection = interleaved_objection};

}  // namespace troupe::schedule
