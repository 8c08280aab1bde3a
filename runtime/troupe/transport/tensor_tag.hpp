#pragma once
#include <cstdint>

#include "troupe/layout/mesh_shape.hpp"

namespace troupe::transport {

/// What a tensor on the data plane is.
enum class tensor_role : std::uint8_t {
  activation = 1,
  gradient = 2,
  snapshot_part = 4,      ///< a copy of a stage's state, for the receiving process to keep
  reduction_partial = 5,  ///< of one stage: its partial gradients, or norms, for a reduction of the plan
  gathered = 6,           ///< for the program of the receiving process
  restored_state = 7,     ///< of a stage that the receiving process restores
  replica_gradients = 8,  ///< of one lane, the elements that the receiving one adds up
  summed_gradients = 9,   ///< over all lanes along an axis, the elements that the sending one has added up
  replica_values = 10,    ///< of one lane, for a sum over lanes within an action (plan::joint)
  shard_weights = 11      ///< that the sending lane owns, for a U of the receiving one
};

/// Of an earlier version.
constexpr auto unused_tensor_role = static_cast<tensor_role>(3);

/// Whether an action of the receiving stage takes it before it runs.
constexpr bool is_input(tensor_role role) {
  return role == tensor_role::activation || role == tensor_role::gradient ||
         role == tensor_role::reduction_partial || role == tensor_role::replica_gradients ||
         role == tensor_role::summed_gradients || role == tensor_role::shard_weights;
}

/// Whether lanes send it to each other within or around an action. Such a tensor goes past the receiver's
/// mailbox, since it may wait for it within an action.
constexpr bool is_between_replicas(tensor_role role) {
  return role == tensor_role::replica_gradients || role == tensor_role::summed_gradients ||
         role == tensor_role::replica_values || role == tensor_role::shard_weights;
}

/// Identifies a tensor and its receiver.
///
/// | field | of | meaning |
/// |---|---|---|
/// | stage | what an action takes | the receiving stage, with `replica` and `slice` |
/// | stage | parameters and snapshot parts | the owning stage |
/// | microbatch | a reduction_partial | the reduction |
/// | microbatch | gradients of lanes | the optimizer step |
/// | microbatch | weights of a shard | the number of the U among the stage's of the step |
/// | microbatch | a gathered tensor | its index in the call |
/// | port | an activation | the input port that takes it |
/// | port | a gradient | the edge that it comes back on: its index in stage_graph::outputs_of(stage) |
/// | port | a reduction_partial | the sender's index among all that take part, lane by lane |
/// | port | gradients, weights of lanes | bucket * number of lanes along the axis + the sender's index |
/// | port | replica_values | the same with the number of the message in this step instead of the bucket |
/// | axis | what lanes send each other | along which they are |
/// | call | a snapshot part | number of the job |
/// | call | all others | number of the World's call (fit, evaluate, ...) |
struct tensor_tag {
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  std::uint32_t call = 0;
  std::uint32_t stage = 0;
  std::uint32_t microbatch = 0;
  tensor_role role = tensor_role::activation;
  std::uint32_t port = 0;
  std::uint32_t replica = 0;           ///< 0 where any is meant
  std::uint32_t slice = 0, shard = 0;  ///< with `stage` and `replica` the part_id of a state
  layout::mesh_axis axis = layout::mesh_axis::dp;
  bool operator==(const tensor_tag&) const = default;
};

}  // namespace troupe::transport
