#pragma once
#include <spdlog/logger.h>

#include <caf/actor.hpp>
#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/result.hpp>
#include <map>
#include <memory>
#include <optional>

#include "troupe/stage/messages.hpp"
#include "troupe/transport/transport.hpp"

namespace troupe {

struct stage_options {
  int stage = 0;
  int rank = 0;
  program_factory make_program;
  std::optional<int> replica_rank;  ///< who keeps a copy of this stage's copies; none in a job of one process
  transport* out = nullptr;
  std::shared_ptr<spdlog::logger> log;  ///< may be null
  std::uint32_t job = 0;                ///< see job_definition::number
};

/// The control face of one stage: owns its program and the copies of its state in memory.
///
/// States: no program -> detached (after the first restore) <-> attached to a device, which alone then
/// touches the program. The supervisor attaches and detaches by begin_generation and quiesce of the device,
/// and sends restore_stage only while detached.
///
///   message       -> reply                                            errors
///   restore_stage -> stage_ready                                      no such copy
///   state_copied  -> part_held to the scheduler, replica to the peer
///   write_copy    -> write_part to the disk_writer; part_written with a problem to the
///                    scheduler, if the copy is gone
///   drop_before   ->
///   list_parts    -> held_parts
///   get_copy      -> stage_copy                                       no such copy
///
/// A program that cannot be made or cannot load a state ends the actor, and starts anew with another one.
/// Monitors nobody. Scheduled: it copies memory at restores only.
class stage_state {
 public:
  static constexpr const char* actor_name = "stage";
  stage_state(caf::event_based_actor* self, stage_options options);
  caf::behavior make_behavior();

 private:
  caf::result<stage_ready> on_restore(const restore_stage& order);
  void on_copied(const state_copied& copied);
  void on_write(const write_copy& order);
  void make_program();
  void refuse_to_write(std::uint64_t step);
  void on_drop(const drop_before& order);
  held_parts on_list() const;
  caf::result<stage_copy> on_get(const get_copy& wanted) const;
  void replicate(std::uint64_t step, const tensor& packed);

  struct copy {
    std::uint64_t generation = 0;
    tensor packed;
  };

  // constant
  caf::event_based_actor* self_;
  stage_options options_;
  // state
  std::shared_ptr<stage_program> program_;
  /// Of the program's state at the beginning, for the disk writer.
  std::shared_ptr<const std::vector<named_tensor>> began_non_finite_;
  std::map<std::uint64_t, copy> copies_;  ///< by steps applied
  std::uint64_t committed_step_ = 0;      ///< the newest that it was told of
  // current generation
  std::uint64_t generation_ = 0;
  caf::actor scheduler_;
  caf::actor replica_keeper_;
  caf::actor disk_writer_;
};

}  // namespace troupe
