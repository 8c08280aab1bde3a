#pragma once
#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/result.hpp>
#include <caf/typed_response_promise.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "troupe/link/dropped_frames.hpp"
#include "troupe/messages/link.hpp"
#include "troupe/messages/supervisor.hpp"
#include "troupe/posix/core_wait.hpp"
#include "troupe/supervisor/generation_runner.hpp"
#include "troupe/supervisor/io_subtree.hpp"
#include "troupe/supervisor/job_children.hpp"
#include "troupe/supervisor/process_connections.hpp"
#include "troupe/supervisor/program_calls.hpp"
#include "troupe/supervisor/requested_ends.hpp"
#include "troupe/supervisor/state/pause_requests.hpp"
#include "troupe/supervisor/state/supervision_tree.hpp"
#include "troupe/supervisor/state_restore.hpp"
#include "troupe/supervisor/supervisor_options.hpp"

namespace troupe::actors::supervisor {

/// Runs one process: spawns its actors, takes them through generations, restarts those that fail.
///
///   part                 what it does
///   generation_runner    fence, devices' stop, view; new generations and the end of the job
///   state_restore        restores the stages' states in a generation
///   program_calls        announces the program's calls, passes results back
///   pause_requests       passes on the program's requests to pause the job
///   job_children         spawns and monitors the actors
///   supervision_tree     decides what a failure costs
///   io_subtree           restarts children of io
///   requested_ends       ends actors and the process at the command of those who watch the job
///   process_connections  links to other processes, names of the own actors
///
/// States: joining (before the first view) -> active (view_formed) -> quiescing (fence_raised) -> waiting
/// (all devices stopped, fence acknowledged) -> active ... A fence may arrive in any state.
///
///   message              what is done or sent (reply: answers a request)
///   define_job           spawns loader, peer_copy_store, snapshot_writer; ends the previous job's children
///   add_source           to the loader
///   enter_call           copies_held, call_entered to the scheduler
///   program_received     gathered_received to the scheduler
///   fetch_cached         gather_tensors to the gatherer, in each generation until the next call
///   cancel_call          cancel_training to the scheduler of this process
///   request_pause        pause_requested to the scheduler, one at a time
///   pause_changed        publishes it, answers requests that wait for it
///   carry_out_pause      reply pause_carried_out, when the scheduler has
///   end_actor            reply command_carried_out, or unavailable (1)
///   end_process          reply command_carried_out, then the process ends, or unavailable (2)
///   end_process_now      ends the process
///   set_log_level        reply command_carried_out
///   fence_raised         quiesce to devices, membership::quiesced when all have stopped; suspects itself
///                        if one does not stop
///   check_stopping       membership::still_computing, while devices have not stopped
///   view_formed          copies_held, call_entered, over new links
///   restore_command      spawns stages and devices that it hosts from now on; restore_stage to stages,
///                        devices_known, process_restored; ends the job if no state is available
///   copies_committed     drop_before to the peer_copy_store
///   state_arrived        restore_stage to the stage without a copy
///   snapshot_failed      discard_parts to the snapshot_writer
///   write_copies         write_copy to stages
///   replicate_copies     replicate_again to stages
///   restart_due          restarts children of io
///   want_results         reply known_results
///   inspect_process      reply process_report
///   call_finished        empty reply, result to the user's thread, or unavailable (3)
///   peer_broken          membership::suspect
///   replica_group_failed membership::request_generation, if the generation still runs two seconds
///                        later; ends the job if that has not helped
///   tensor_lost, link_failed, restart_requested
///                        membership::request_generation; ends the job if there are too many
///   generation_requested membership::request_generation
///   check_progress       process_progress to the scheduler, while a device makes no progress
///   stop_requested       stop_job to the scheduler
///   recovery_done, job_done, job_ended, job_was_stopped
///                        to the user's thread
///
/// unavailable: (1) the actor does not run, or the job would end; (2) there is no launcher, or it is another
/// process; (3) a newer generation has begun.
///
/// Monitors the actors it spawns, in two subtrees (supervision_tree). A child of io that fails is spawned
/// again alone: the supervisor gives its new handle to those that use it, tells the scheduler what was lost,
/// and repeats requests that were not answered. For a child of compute it requests a new generation and
/// spawns the child again with the next view. An inspector that fails too often is given up.
/// actor_error::bad_input and too many failures end the job; device_lost ends the process, if another one
/// replaces it, else the job. Detached: it destroys and creates the data
/// plane, which blocks for milliseconds.
class supervisor_state {
 public:
  static constexpr const char* actor_name = "supervisor";
  supervisor_state(caf::event_based_actor* self, supervisor_options options);
  supervisor_state(const supervisor_state&) = delete;
  supervisor_state& operator=(const supervisor_state&) = delete;
  caf::behavior make_behavior();

 private:
  // the job and the generation
  void on_define(const messages::define_job& command);
  void forget_job();
  void on_fence(const messages::fence_raised& fence);
  void on_view(const messages::view_formed& formed);
  void on_recovered(const messages::recovery_done& done);
  void on_job_over(const job::client_event& event);
  void log_dropped_frames();
  // from the program
  void on_program_received(const messages::program_received& received);
  std::uint64_t add_pause(job::pause_request request);
  void on_request_pause(const messages::request_pause& command);
  void send_pause_request();
  caf::result<messages::pause_carried_out> on_carry_out_pause(const messages::carry_out_pause& command);
  void answer_pauses();
  // from the scheduler
  void on_pause_changed(const messages::pause_changed& changed);
  void on_snapshot_failed(const messages::snapshot_failed& failed);
  void on_write_copies(const messages::write_copies& command);
  void on_replicate(const messages::replicate_copies& command);
  void on_restart_requested(const messages::restart_requested& wanted);
  // failures
  void on_down(const caf::down_msg& down);
  void note_replicas_lost();
  void on_device_lost(const std::string& cause);
  void on_inspector_down(const std::string& reason);
  void log_restart(const restart_command& command, const std::string& actor, const std::string& reason) const;
  void on_peer_broken(const messages::peer_broken& broken);
  void on_group_failed(const messages::replica_group_failed& failed);
  void on_tensor_lost(const messages::tensor_lost& lost);
  void on_link_failed(const messages::link_failed& failed);
  messages::process_report on_inspect(const messages::inspect_process& asked);
  // progress of devices and loader
  void begin_watching();
  void on_check_progress();

  const process_generation& generation() const { return generations_.current(); }

  // constant
  caf::event_based_actor* self_;
  supervisor_options options_;
  std::shared_ptr<const actor::actor_counters> own_counters_;
  posix::core_wait core_wait_;
  messages::job_history history_;             ///< for the inspector of this or of another process
  std::shared_ptr<job::call_log> completed_;  ///< shared with the scheduler of this process

  job_children children_;
  supervision_tree tree_;
  process_connections connections_;
  generation_runner generations_;
  pause_requests pauses_;
  program_calls calls_;
  state_restore restore_;
  io_subtree io_;
  link::dropped_frames dropped_;
  recovery::restart_intensity inspector_restarts_;
  requested_ends ends_;
  std::map<std::uint64_t, caf::typed_response_promise<messages::pause_carried_out>>
      pause_answers_;  ///< by request
  std::chrono::steady_clock::time_point progress_checked_;
  std::uint64_t group_failed_in_ = 0;  ///< the newest generation in which one did
};

}  // namespace troupe::actors::supervisor
