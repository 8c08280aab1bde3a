#pragma once
#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/result.hpp>

#include "troupe/messages/inspector.hpp"
#include "troupe/messages/scheduler.hpp"
#include "troupe/scheduler/call_runner.hpp"
#include "troupe/scheduler/job_ending.hpp"
#include "troupe/scheduler/progress_watch.hpp"
#include "troupe/scheduler/snapshot_commits.hpp"
#include "troupe/scheduler/state/job_state.hpp"

namespace troupe::actors::scheduler {

/// Runs the job's calls in one generation: decides what to restore, grants steps to devices, collects
/// results, requests state copies and snapshots, and commits snapshots. Rank 0's supervisor spawns a new
/// scheduler for each generation; its whole knowledge comes from the options and from the processes'
/// messages.
///
///   part              what it does
///   call_runner       runs calls: enters, replays, does their work, publishes results
///   job_restore       decides what is restored, and from where
///   step_credits      grants steps to the devices
///   pause_control     carries out requests to pause the job
///   snapshot_commits  decides when copies are due, and commits snapshots
///   job_ending        ends the job before its last call
///   progress_watch    detects that no device makes progress
///
/// States: gathering (until all processes have entered the call) -> finding (snapshots on disk, if memory
/// lacks the state) -> restoring (once per generation) -> running -> gathering (the next call).
///
///   message                  -> reply                                       errors
///   job_known                ->
///   devices_known            ->
///   copies_held              ->
///   call_entered             -> restore_command | step_credit |             jobs or calls differ: refused
///                               call_finished | want_results
///   process_restored         -> step_credit
///   step_done                -> step_credit, when the window moves; call_finished; write_copies, before a
///                               value that is not finite ends the job
///   cut_reached              -> pause_changed, when all devices stand where a paused job stops;
///                               call_finished, when they stand where forward_backward ends
///   pause_requested          -> pause_changed; step_credit, when a step or all is let go on
///   part_held                -> copies_committed, to members that no device tells so
///   replicas_lost            ->
///   replicas_wanted          -> replicate_copies, to the process whose copies were lost
///   writes_lost              -> write_copies, to the process whose snapshot writer was restarted
///   snapshot_writer_replaced -> what the previous snapshot writer has not answered
///   part_written             -> snapshot_failed, when one could not be written
///   retry_credit             -> step_credit, when the user's thread has taken enough finished steps
///   check_disk_wait          -> step_credit, when the disk has held steps up for long enough
///   parameters_listed        -> hash_parameters, to the device whose parameters come first
///   parameters_hashed        -> hash_parameters, to the next one; call_finished
///   gathered_received        -> call_finished, when all programs have what the call gives them
///   cancel_training          -> step_credit of the last step
///   stop_job                 -> membership::stopped, when what is done is on disk
///   check_stop               -> membership::stopped, when no process has entered a call
///   save_timed_out           -> the end of the job after a value that is not finite, whatever is on disk
///   inspect_scheduler        -> scheduler_report
///   save_snapshot            -> snapshot_saved, when it is on disk          no folder, nothing done:
///                                                                           unavailable; disk's: failed
///   process_progress         -> membership::suspect | generation_requested  no progress for too long
///
/// When all other processes have confirmed call_finished, the own process gets it, last of all. Requests to
/// other processes are answered by their links at the latest (link.hpp), so they have no time limit here.
///
/// Messages of another generation are dropped. Monitors no actor: membership reports lost processes.
/// Scheduled: its handlers neither block nor compute.
class scheduler_state {
 public:
  static constexpr const char* actor_name = "scheduler";
  scheduler_state(caf::event_based_actor* self, scheduler_options options);
  scheduler_state(const scheduler_state&) = delete;
  scheduler_state& operator=(const scheduler_state&) = delete;
  caf::behavior make_behavior();

 private:
  void on_job(const messages::job_known& known);
  void on_devices(const messages::devices_known& known);
  void on_copies(const messages::copies_held& held);
  void on_entered(const messages::call_entered& entered);
  void on_held(const messages::part_held& held);
  void on_written(const messages::part_written& written);
  void on_commit_over();
  void on_check_disk_wait();
  void on_snapshot_writer_replaced(const messages::snapshot_writer_replaced& replaced);
  messages::scheduler_report on_inspect(const messages::inspect_scheduler& asked);
  caf::result<messages::snapshot_saved> on_save();

  // constant
  caf::event_based_actor* self_;
  scheduler_options options_;

  job_state job_;
  snapshot_commits commits_;
  job_ending ending_;
  call_runner calls_;
  progress_watch progress_;
};

}  // namespace troupe::actors::scheduler
