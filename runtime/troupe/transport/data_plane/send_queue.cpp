#include "troupe/transport/data_plane/send_queue.hpp"

namespace troupe::transport {
namespace {

constexpr int urgent = 0, between_replicas = 1, copy_of_state = 2;

int class_of(const tensor_tag& tag) { return std::get<0>(send_order_of(tag)); }

}  // namespace

send_order send_order_of(const tensor_tag& tag) {
  switch (tag.role) {
    case tensor_role::replica_gradients:
    case tensor_role::summed_gradients:
    case tensor_role::shard_weights:
      return {between_replicas, tag.step, tag.microbatch, tag.stage, tag.port};
    case tensor_role::snapshot_part:
      return {copy_of_state, 0, 0, 0, 0};
    case tensor_role::activation:
    case tensor_role::gradient:
    case tensor_role::reduction_partial:
    case tensor_role::gathered:
    case tensor_role::restored_state:
    case tensor_role::replica_values:
      break;
  }
  return {urgent, 0, 0, 0, 0};
}

void bytes_in_flight::add(const tensor_tag& tag, std::size_t count) {
  if (class_of(tag) == between_replicas) gradients += count;
  if (class_of(tag) == copy_of_state) copies += count;
}

void bytes_in_flight::subtract(const tensor_tag& tag, std::size_t count) {
  if (class_of(tag) == between_replicas) gradients -= count;
  if (class_of(tag) == copy_of_state) copies -= count;
}

bool send_queue::may_go(const tensor_tag& tag, const bytes_in_flight& now) {
  switch (class_of(tag)) {
    case between_replicas:
      return now.gradients < max_bytes_in_flight;
    case copy_of_state:
      return now.gradients + now.copies < max_bytes_in_flight;
    default:
      return true;
  }
}

}  // namespace troupe::transport
