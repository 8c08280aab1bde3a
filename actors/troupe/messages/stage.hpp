#pragma once
#include <caf/actor.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "troupe/actor/message_storage.hpp"
#include "troupe/contents/tensor_contents.hpp"
#include "troupe/mesh/view.hpp"
#include "troupe/program/stage_program.hpp"
#include "troupe/recovery/inventory.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::actors::messages {

/// Device -> stage: a copy of the state after `step` optimizer steps.
struct state_copied {
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  tensor packed;
  bool to_disk = false;
};

/// Device -> stage -> peer_copy_store: drop copies older than `step`.
struct drop_before {
  std::uint64_t step = 0;
};

/// Supervisor -> stage, peer_copy_store or snapshot_writer, a request: list the state copies held. Reply:
/// held_parts.
struct list_parts {};
struct held_parts {
  std::vector<recovery::held_part> parts;
  double since_disk_s = 0;           ///< of the snapshot_writer; see process_inventory
  std::uint64_t committed_step = 0;  ///< the newest reported to it; see process_inventory
};

/// Supervisor -> stage, a request: load this state. Reply: stage_ready; the stage can be attached then. If
/// `packed` is undefined, the stage loads its own copy of `step`, or the initial weights if `from_scratch`.
struct restore_stage {
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  bool from_scratch = false;
  tensor packed;
  caf::actor scheduler;  ///< the scheduler of this generation
  /// Those of this generation; they may have been restarted.
  caf::actor peer_copy_store, snapshot_writer;
  std::optional<world_rank> keeper;  ///< gets a replica of each copy in this generation, see copy_keeper
};
struct stage_ready {
  layout::cell cell;
  std::shared_ptr<program::stage_program> program;
  std::map<std::int32_t, program::step_metrics>
      metrics;  ///< of the last stage's step, by replica; empty elsewhere
};

/// Supervisor -> stage, a request: which tensors does its state hold? Reply: contents_listed.
struct list_contents {
  bool with_new_optimizer = false;  ///< asks for what the optimizer's tensors begin with, too
};
struct contents_listed {
  std::vector<tensor_contents> contents;
  std::vector<named_tensor> new_optimizer = {};
};

/// Supervisor -> stage: another member hosts the stage from now on. The stage keeps its copies of `step` and
/// earlier ones, as a second copy, until the supervisor stops it.
struct set_aside {
  std::uint64_t step = 0;
};

/// Supervisor -> stage: the peer_copy_store or the snapshot_writer was restarted; these are the ones to use.
struct io_replaced {
  caf::actor peer_copy_store, snapshot_writer;
};

/// Supervisor -> stage: send all copies to the peer again, whose peer copy store was restarted.
struct replicate_again {};

/// Supervisor -> stage: write the copy of `step`, which was made for memory only or was not written, to disk:
/// at once, or when the device has made it. Nothing is done by a stage whose part is not written
/// (is_written).
struct write_copy {
  std::uint64_t step = 0;
};

/// Supervisor -> stage, a request: the copy of `step`, for a process that lost it. Reply: stage_copy.
struct get_copy {
  std::uint64_t step = 0;
};
struct stage_copy {
  tensor packed;
};

}  // namespace troupe::actors::messages

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::state_copied)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::drop_before)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::list_parts)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::held_parts)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::restore_stage)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::stage_ready)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::list_contents)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::contents_listed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::set_aside)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::io_replaced)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::replicate_again)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::write_copy)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::get_copy)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::stage_copy)
