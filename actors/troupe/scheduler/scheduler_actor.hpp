#pragma once
#include <spdlog/logger.h>

#include <caf/actor.hpp>
#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "troupe/cluster/membership.hpp"
#include "troupe/device/messages.hpp"
#include "troupe/disk_writer/messages.hpp"
#include "troupe/job/call_log.hpp"
#include "troupe/job/client_mailbox.hpp"
#include "troupe/placement/hosting.hpp"
#include "troupe/scheduler/copy_interval.hpp"
#include "troupe/scheduler/disk_snapshots.hpp"
#include "troupe/scheduler/entered_calls.hpp"
#include "troupe/scheduler/held_copies.hpp"
#include "troupe/scheduler/job_pause.hpp"
#include "troupe/scheduler/messages.hpp"
#include "troupe/scheduler/stall_watch.hpp"
#include "troupe/scheduler/step_tracker.hpp"
#include "troupe/supervisor/messages.hpp"

namespace troupe {

struct scheduler_options {
  std::uint64_t generation = 1;
  int world_size = 1;
  view present;  ///< of this generation
  std::string numeric_class;
  std::vector<caf::actor> supervisors;  ///< [world_size], proxies where remote
  membership* members = nullptr;
  std::shared_ptr<client_mailbox> client;  ///< receives step_progress
  std::shared_ptr<spdlog::logger> log;
  /// Steps granted beyond the last complete one, so that devices need no round trip per step.
  std::uint64_t window = 8;
  /// Bounds the time of granted steps, since a job that is to stop completes them first.
  std::chrono::seconds window_time{2};
  /// How long steps wait while disk_snapshots::max_pending snapshots are being written. After that steps
  /// continue and further snapshots are skipped, until one is written.
  std::chrono::seconds disk_wait_limit = std::chrono::seconds(10);
  /// How long the job waits for its last finite state to be on disk before it ends.
  std::chrono::seconds save_timeout = std::chrono::seconds(120);
  int rank = 0;  ///< of this node
  /// The results of calls that this node knows; shared with its supervisor.
  std::shared_ptr<call_log> completed = std::make_shared<call_log>();
  /// A device or loader without progress for this long counts as lost; 0: never.
  std::chrono::milliseconds progress_timeout{0};
};

/// Runs the job's calls in one generation: decides what to restore, grants steps to devices, collects
/// results, orders state copies and snapshots, and commits snapshots. Rank 0's supervisor spawns a new
/// scheduler for each generation; its whole knowledge comes from the options and from the nodes' messages.
///
/// States: gathering (until all nodes have entered the call) -> finding (snapshots on disk, if memory lacks
/// the state) -> restoring (once per generation) -> running -> gathering (the next call).
///
///   message            -> reply                                            errors
///   job_known          ->
///   devices_known      ->
///   copies_held        ->
///   call_entered       -> restore_order | grant | call_finished            jobs or calls differ: refused
///                         | want_results
///   node_restored      -> grant
///   step_done          -> grant, when the window moves; call_finished; write_copies, before a value that is
///                         not finite ends the job
///   cut_reached        -> pause_changed, when all devices stand where a paused job stops
///   pause_requested    -> pause_changed; grant, when a step or all is let go on
///   part_held          -> copies_committed, to members that no device tells so
///   replicas_lost      ->
///   replicas_wanted    -> replicate_copies, to the node whose copies were lost
///   writes_lost        -> write_copies, to the node whose disk writer was restarted
///   disk_writer_replaced -> what the previous disk writer has not answered
///   part_written       -> snapshot_failed, when one could not be written
///   check_disk_wait        -> grant, when the disk has held steps up for long enough
///   parameters_arrived -> call_finished
///   gathered_received     -> call_finished, when all programs have what the call gives them
///   cancel_training    -> grant of the last step
///   stop_job           -> membership::stopped, when what is done is on disk
///   node_progress      -> membership::suspect | generation_requested      no progress for too long
///
/// When all other nodes have confirmed call_finished, the own node gets it, last of all. Requests to other
/// nodes are answered by their links at the latest (link.hpp), so they have no time limit here.
///
/// Messages of another generation are dropped. Monitors no actor: membership reports lost nodes. Scheduled:
/// its handlers neither block nor compute.
class scheduler_state {
 public:
  static constexpr const char* actor_name = "scheduler";
  scheduler_state(caf::event_based_actor* self, scheduler_options options);
  caf::behavior make_behavior();

 private:
  enum class phase { gathering, finding, restoring, running };

  // calls: enter_calls.cpp
  void on_entered(const call_entered& entered);
  void on_job(const job_known& known);
  void forget_previous_job();
  void on_copies(const copies_held& held);
  void catch_up();
  void on_known(int rank, const known_results& known);
  void on_no_results(int rank, const caf::error& problem);
  void continue_entering();
  bool asks_for_results();
  void tell_result(int rank, const call_result& result);
  void request_confirmation(int rank, const call_result& result);
  void on_confirmed(int rank, std::uint32_t index);
  void tell_own_node();
  void begin_call();
  void continue_call();
  call_result empty_result() const;
  void finish_call(call_result result);
  void refuse_call(const std::string& why);
  // restoring: restore_state.cpp
  void place_and_restore();
  void restore(const restore_plan& plan);
  std::set<member_id> keepers_without_device() const;
  void restore_from_disk_or_scratch();
  void search_disk();
  void on_found(const found_on_disk& found);
  void read_results_on_disk();
  void restore_from(const snapshot_manifest& manifest);
  void restart_from_scratch();
  void on_restored(const node_restored& restored);
  // running: run_steps.cpp
  void on_step_done(const step_done& done);
  void on_parameters(const parameters_arrived& arrived);
  void on_gathered(const gathered_received& taken);
  void finish_if_all_taken();
  void on_cancel(const cancel_training& order);
  bool is_cancelled() const { return takes_new_steps_ && cancelled_call_ == request().index; }
  void train_on();
  void start(call_kind kind, std::uint32_t source, std::uint64_t first, std::uint64_t end);
  std::uint64_t window() const;
  void extend_grant();
  void grant_steps();
  bool has_room_for_steps();
  std::vector<due_copy> plan_copies(std::uint64_t until);
  std::uint64_t limit_by_disk(std::uint64_t until);
  void check_disk_wait_later();
  bool is_user_behind();
  void on_retry_grant();
  void on_finished(const finished_step& step);
  void finish_training_if_safe();
  // pauses: pause_job.cpp
  void on_pause_requested(const pause_requested& wanted);
  void carry_out_pause_requests();
  void tell_pause();
  void tell_pause(int rank);
  void on_cut_reached(const cut_reached& reached);
  void note_standing();
  /// Where a paused job stops; null: nowhere. A job that is to end goes on to its end.
  const cut* stop_cut() const { return stopping_ ? nullptr : pause_.limit(); }
  std::uint64_t step_limit() const;
  cut granted_cut() const;
  void grant_within_step();
  // snapshots: commit_snapshots.cpp
  std::vector<due_copy> copies_due(std::uint64_t first, std::uint64_t last);
  void on_held(const part_held& held);
  void tell_committed();
  void on_written(const part_written& written);
  void commit(std::uint64_t step, std::vector<manifest_part> parts);
  void on_commit_over(std::uint64_t step);
  void request_commit(const commit_snapshot& order);
  // restarts of nodes' actors: note_io_restarts.cpp
  void on_replicas_lost(const replicas_lost& lost);
  void on_replicas_wanted(const replicas_wanted& wanted);
  void on_writes_lost(const writes_lost& lost);
  void on_disk_writer_replaced(const disk_writer_replaced& replaced);
  void on_snapshot_failed(std::uint64_t step);

  // infinite and NaN values: stop_on_non_finite.cpp
  bool continues_after_non_finite(const step_done& done);
  void save_last_finite();
  void end_non_finite();

  // stopping: stop_job.cpp
  void on_stop(const stop_job& order);
  bool has_nothing_to_save() const;
  void end_stopped();
  std::string text_of_stop() const;

  // progress: watch_progress.cpp
  void on_progress(const node_progress& seen);
  plan running_plan() const;
  void act_on(const stall& found);
  std::string wait_without_limit() const;
  std::string missing_ranks() const;
  std::string ranks_without_tensors() const;
  void warn_of_wait(const std::string& what);

  void fail(const std::string& cause);

  std::chrono::steady_clock::time_point now() const { return self_->clock().now(); }
  const job_definition& job() const { return *known_.job; }
  std::uint32_t num_stages() const { return static_cast<std::uint32_t>(job().training.num_stages); }
  const caf::actor& supervisor_of(member_id member) const {
    return options_.supervisors[static_cast<std::size_t>(member.rank)];
  }
  const call_request& request() const { return calls_.request(); }
  std::size_t num_completed() const { return options_.completed->size(); }

  // constant
  caf::event_based_actor* self_;
  scheduler_options options_;
  job_known known_;
  std::vector<caf::actor> devices_;  ///< [num_devices], from the restore on

  // the generation
  phase phase_ = phase::gathering;
  bool restored_ = false;
  hosting hosts_;                ///< from the restore on
  std::set<member_id> to_tell_;  ///< members that copies_committed goes to
  std::uint64_t told_committed_ = 0;
  entered_calls calls_;
  std::vector<bool> node_restored_;
  bool is_asking_ = false;                    ///< for results of earlier calls
  std::map<int, std::uint64_t> num_known_;    ///< results that each rank knows or was told
  std::optional<snapshot_manifest> on_disk_;  ///< found, and the newest that is to be used
  std::set<int> not_seen_;                    ///< ranks that have not confirmed the newest result
  /// Optimizer steps done once the interrupted step is replayed; 0: nothing to replay.
  std::uint64_t interrupted_step_ = 0;
  std::uint64_t position_ = 0;                 ///< optimizer steps done by all devices
  std::optional<std::uint64_t> step_on_disk_;  ///< the newest that this generation knows to be there
  std::optional<std::string> non_finite_;      ///< the infinite or NaN value that ends the job
  bool stopping_ = false;
  bool stopped_ = false;
  step_metrics metrics_;  ///< of the step before `position_`

  // pauses
  job_pause pause_;
  bool knows_pause_ = false;                     ///< all nodes have told their state
  std::vector<pause_requested> pause_requests_;  ///< not carried out yet

  // the running activity
  call_request activity_;
  std::uint64_t end_ = 0;
  std::uint64_t granted_end_ = 0;      ///< one past the last step that is granted to its end
  std::vector<plan_position> within_;  ///< [num_devices] the last grant that ended within steps; empty: none
  std::uint64_t copies_planned_ = 0;   ///< whether a copy is due is decided up to this step
  bool takes_new_steps_ = false;       ///< runs steps of the current call, not a replay
  std::optional<std::uint32_t> cancelled_call_;  ///< the call of the last cancel_training
  step_tracker ledger_;
  bool waits_for_user_ = false;       ///< its mailbox is full; grants are held up
  bool retry_grant_pending_ = false;  ///< a delayed retry_grant is under way
  call_result result_;
  std::map<std::uint32_t, tensor> parameters_;
  std::set<int> taken_;  ///< ranks whose programs have received their tensors

  // progress
  stall_watch stalls_;
  std::string warned_of_, waits_for_;
  std::optional<std::chrono::steady_clock::time_point>
      waits_since_;         ///< since the job waits for the user, a restore or the disk
  bool has_acted_ = false;  ///< a stall of this generation was acted on

  // snapshots
  copy_interval copies_;
  std::chrono::steady_clock::time_point last_finished_;
  std::uint64_t last_copy_due_ = 0;
  held_copies held_;
  disk_snapshots disk_;
  std::map<std::uint64_t, commit_snapshot> committing_;  ///< requested of the disk writer, by step
  bool skipping_ = false;                                ///< snapshots are skipped until one is written
  bool check_disk_wait_pending_ = false;                 ///< a delayed check_disk_wait is under way
};

}  // namespace troupe
