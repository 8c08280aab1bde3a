#include "troupe/transport/send_queue.hpp"

namespace troupe {

send_order send_order_of(const tensor_tag& tag) {
  switch (tag.role) {
    case tensor_role::replica_gradients:
    case tensor_role::summed_gradients:
      return {1, tag.step, tag.microbatch, tag.stage, tag.port};
    case tensor_role::snapshot_part:
      return {2, 0, 0, 0, 0};
    case tensor_role::activation:
    case tensor_role::gradient:
    case tensor_role::parameter:
    case tensor_role::contribution:
    case tensor_role::gathered:
    case tensor_role::restored_state:
    case tensor_role::replica_values:
      break;
  }
  return {};
}

}  // namespace troupe
