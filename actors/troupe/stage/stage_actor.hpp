#pragma once
#include <spdlog/logger.h>

#include <caf/actor.hpp>
#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/result.hpp>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "troupe/job/latest_copies.hpp"
#include "troupe/messages/stage.hpp"
#include "troupe/tensor/memory_account.hpp"
#include "troupe/transport/transport.hpp"

namespace troupe::actors::stage {

struct stage_options {
  layout::part_id part;
  int rank = 0;
  program::program_factory make_program;
  transport::transport* out = nullptr;
  std::shared_ptr<spdlog::logger> log;  ///< may be null
  std::uint32_t job = 0;                ///< see job_definition::number
  memory_account account = {};          ///< of its device: charged for the program
  layout::replica_content content = layout::replica_content::own;
  std::shared_ptr<job::latest_copies> latest = {};  ///< gets each copy; may be null
};

/// Owns one stage's program and the copies of its state in memory. It does not compute; a device does.
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
  void on_copied(const messages::state_copied& copied);
  void on_write(const messages::write_copy& command);
  messages::contents_listed on_contents(const messages::list_contents& wanted);
  void make_program();
  void refuse_to_write(std::uint64_t step);
  void on_set_aside(const messages::set_aside& command);
  void on_drop(const messages::drop_before& command);
  messages::held_parts on_list() const;
  caf::result<messages::stage_copy> on_get(const messages::get_copy& wanted) const;
  void replicate(std::uint64_t step, const tensor& packed);
  void send_replica(std::uint64_t step, const tensor& packed);
  void on_io_replaced(const messages::io_replaced& replaced);

  struct copy {
    std::uint64_t generation = 0;
    tensor packed;
  };

  // constant
  caf::event_based_actor* self_;
  stage_options options_;
  // state
  std::shared_ptr<program::stage_program> program_;
  /// Tensors of the initial state with infinite or NaN elements; see write_part.
  std::shared_ptr<const std::vector<named_tensor>> began_non_finite_;
  std::map<std::uint64_t, copy> copies_;  ///< by steps applied
  std::uint64_t committed_step_ = 0;      ///< the newest reported to it
  // current generation
  std::uint64_t generation_ = 0;
  caf::actor scheduler_;
  caf::actor peer_copy_store_;
  std::optional<world_rank> keeper_;    ///< gets a replica of each copy
  std::set<std::uint64_t> to_write_{};  ///< copies to write when the device has made them
  caf::actor snapshot_writer_;
};

}  // namespace troupe::actors::stage
