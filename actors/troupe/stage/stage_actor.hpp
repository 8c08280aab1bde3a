#pragma once
#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/result.hpp>
#include <memory>

#include "troupe/messages/stage.hpp"
#include "troupe/stage/copy_holder.hpp"
#include "troupe/tensor/memory_account.hpp"

namespace troupe::actors::stage {

struct stage_options {
  copy_holder_options copies;
  layout::cell cell;
  program::program_factory make_program;
  memory_account account = {};  ///< of its device: charged for the program
};

/// Owns one stage's program and the copies of its state in memory (copy_holder). It does not compute; a
/// device does.
///
/// States: no program -> detached (after the first restore_stage) <-> attached. While the stage is attached,
/// only its device uses the program. begin_generation attaches the stage to its device and quiesce detaches
/// it. The supervisor sends restore_stage only while the stage is detached.
///
///   message       -> reply                                            errors
///   restore_stage -> stage_ready                                      no such copy
///   state_copied  -> part_held to the scheduler, replica to its keeper if it has one
///   write_copy    -> write_part to the snapshot_writer, now or when the device has made the
///                    copy; part_written with a problem to the scheduler, if it is gone;
///                    nothing, if the part of another replica is written
///   list_contents -> contents_listed
///   set_aside     ->
///   io_replaced   ->
///   replicate_again -> replicas to their keeper
///   drop_before   ->
///   list_parts    -> held_parts
///   get_copy      -> stage_copy                                       no such copy
///
/// A program that cannot be made or cannot load a state ends the actor; the supervisor spawns a new one.
/// Monitors no actor. Scheduled: it copies memory only when it restores.
class stage_state {
 public:
  static constexpr const char* actor_name = "stage";
  stage_state(caf::event_based_actor* self, stage_options options);
  caf::behavior make_behavior();

 private:
  caf::result<messages::stage_ready> on_restore(const messages::restore_stage& command);
  messages::contents_listed on_contents(const messages::list_contents& wanted);
  void on_set_aside(const messages::set_aside& command);
  void make_program();
  // constant
  layout::cell cell_;
  program::program_factory program_factory_;
  memory_account account_;
  // state
  std::shared_ptr<program::stage_program> program_;
  copy_holder copies_;
};

}  // namespace troupe::actors::stage
