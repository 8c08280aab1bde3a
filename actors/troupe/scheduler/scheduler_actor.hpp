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
#include "troupe/scheduler/copy_interval.hpp"
#include "troupe/scheduler/disk_snapshots.hpp"
#include "troupe/scheduler/held_copies.hpp"
#include "troupe/scheduler/messages.hpp"
#include "troupe/scheduler/roll_call.hpp"
#include "troupe/scheduler/stall_watch.hpp"
#include "troupe/scheduler/step_ledger.hpp"
#include "troupe/supervisor/messages.hpp"

namespace troupe {

struct scheduler_options {
  std::uint64_t generation = 1;
  int world_size = 1;
  std::string numeric_class;
  std::vector<caf::actor> supervisors;  ///< [world_size], proxies where remote
  membership* members = nullptr;
  std::shared_ptr<client_mailbox> client;  ///< progress goes there
  std::shared_ptr<spdlog::logger> log;
  /// Steps that may be granted beyond the last complete one: devices go on without a round trip per step.
  std::uint64_t window = 8;
  /// Of long steps fewer are granted, since what is granted is computed before a job that is to stop stops.
  std::chrono::seconds window_time{2};
  /// How long steps wait for the disk to take the snapshots that are on their way there; then they go on, and
  /// further snapshots are skipped until it has.
  std::chrono::seconds disk_wait_limit = std::chrono::seconds(10);
  /// How long the last finite state may take to reach the disk before the job ends without.
  std::chrono::seconds save_timeout = std::chrono::seconds(120);
  int rank = 0;  ///< of this node
  /// What the calls came to, as far as this node knows.
  std::shared_ptr<call_log> completed = std::make_shared<call_log>();
  /// How long other nodes may take to confirm a result before this node goes on without.
  std::chrono::seconds confirm_timeout = std::chrono::seconds(5);
  /// A device or loader that does not get on for so long is treated as lost; 0: never.
  std::chrono::milliseconds progress_timeout{0};
};

/// Runs the job's calls in one generation: decides what to restore, grants steps, gathers results, says when
/// snapshots are due and when they are committed. A new one is started for each generation, on the lowest
/// rank; all it knows comes from the options and from the nodes' inventories.
///
/// States: gathering (nodes enter the call) -> restoring (once) -> running -> gathering (the next call).
///
///   message            -> reply                                            errors
///   job_known          ->
///   call_entered       -> restore_order | grant | call_finished            jobs or calls differ: refused
///                         | want_results
///   known_results      -> as call_entered
///   node_restored      -> grant
///   step_done          -> grant, when the window moves; call_finished; write_copies, before a value that is
///                         not finite ends the job
///   part_held          ->
///   part_written       -> snapshot_failed, when one could not be written
///   disk_waited        -> grant, when the disk has held steps up for long enough
///   parameters_arrived -> call_finished
///   gathered_taken     -> call_finished, when all programs have what the call gives them
///   cancel_training    -> grant of the last step
///   result_seen        -> call_finished to the own node, last of all
///   stop_job           -> membership::stopped, when what is done is on disk
///   node_progress      -> membership::suspect | generation_wanted      no progress for too long
///
/// Messages of another generation are dropped. Monitors nobody: membership tells of lost nodes. Scheduled.
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
  void on_seen(const result_seen& seen);
  void catch_up();
  void on_known(const known_results& known);
  void go_on_entering();
  bool asks_for_results();
  void tell_result(int rank, const call_result& result);
  void tell_own_node();
  void wait_for_confirmations();
  void on_enough_waited();
  void begin_call();
  void continue_call();
  call_result empty_result() const;
  void finish_call(call_result result);
  void refuse_call(const std::string& why);
  // restoring: restore_state.cpp
  void restore(const restore_plan& plan);
  void restore_from_disk_or_scratch();
  void on_found(const found_on_disk& found);
  void read_results_on_disk();
  void restore_from(const snapshot_manifest& manifest);
  void begin_anew();
  void on_restored(const node_restored& restored);
  // running: run_steps.cpp
  void on_step_done(const step_done& done);
  void on_parameters(const parameters_arrived& arrived);
  void on_gathered(const gathered_taken& taken);
  void finish_if_all_taken();
  void on_cancel(const cancel_training& order);
  bool is_cancelled() const { return takes_new_steps_ && cancelled_call_ == request().index; }
  void train_on();
  void start(call_kind kind, std::uint32_t source, std::uint64_t first, std::uint64_t end);
  std::uint64_t window() const;
  void extend_grant();
  std::uint64_t end_the_disk_allows(std::uint64_t until);
  void look_at_disk_later();
  bool must_wait_for_user();
  void on_grant_again();
  void on_finished(const finished_step& step);
  void finish_training_if_safe();
  // snapshots: commit_snapshots.cpp
  std::vector<due_copy> copies_due(std::uint64_t first, std::uint64_t last);
  void on_held(const part_held& held);
  void on_written(const part_written& written);
  void commit(std::uint64_t step, std::vector<manifest_part> parts);
  void on_commit_over(std::uint64_t step);
  void on_snapshot_failed(std::uint64_t step);

  // values that are not finite: stop_on_non_finite.cpp
  bool goes_on_after_non_finite(const step_done& done);
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
  std::string ranks_not_given() const;
  void warn_of_wait(const std::string& what);

  void fail(const std::string& cause);

  std::chrono::steady_clock::time_point now() const { return self_->clock().now(); }
  const job_definition& job() const { return *known_.job; }
  std::uint32_t num_stages() const { return static_cast<std::uint32_t>(job().training.num_stages); }
  const call_request& request() const { return calls_.request(); }
  std::size_t num_completed() const { return options_.completed->size(); }

  // constant
  caf::event_based_actor* self_;
  scheduler_options options_;
  job_known known_;

  // the generation
  phase phase_ = phase::gathering;
  bool restored_ = false;
  roll_call calls_;
  std::vector<bool> node_restored_;
  std::chrono::steady_clock::time_point confirm_until_;
  bool waits_for_confirmations_ = false;
  bool is_asking_ = false;
  std::map<int, std::uint64_t> num_known_;    ///< results that each rank knows or was told
  std::optional<snapshot_manifest> on_disk_;  ///< found, and the newest that is to be used
  std::set<int> not_seen_;                    ///< ranks that have not confirmed the newest result
  /// Steps done once what the failure interrupted is made up for; 0: nothing to make up.
  std::uint64_t interrupted_step_ = 0;
  std::uint64_t position_ = 0;                 ///< optimizer steps done by everyone
  std::optional<std::uint64_t> step_on_disk_;  ///< the newest that this generation knows to be there
  std::optional<std::string> non_finite_;      ///< what ends the job
  bool stopping_ = false;
  bool stopped_ = false;
  step_metrics metrics_;  ///< of the step before `position_`

  // the running activity
  call_request activity_;
  std::uint64_t end_ = 0;
  std::uint64_t granted_end_ = 0;
  bool takes_new_steps_ = false;                 ///< those the call asks for, not some that are made up for
  std::optional<std::uint32_t> cancelled_call_;  ///< whose program wants no further steps
  step_ledger ledger_;
  bool waits_for_user_ = false;    ///< its thread has not taken in what was done
  bool will_grant_again_ = false;  ///< a timer runs
  call_result result_;
  std::map<std::uint32_t, tensor> parameters_;
  std::set<int> taken_;  ///< ranks whose programs have what the call gives them

  // progress
  stall_watch stalls_;
  std::string warned_of_, waits_for_;
  std::optional<std::chrono::steady_clock::time_point> waits_since_;  ///< for what is no device's work
  bool has_acted_ = false;                                            ///< on a stall of this generation

  // snapshots
  copy_interval copies_;
  std::chrono::steady_clock::time_point last_finished_;
  std::uint64_t last_copy_due_ = 0;
  held_copies held_;
  disk_snapshots disk_;
  bool skipping_ = false;   ///< the disk has taken too long: snapshots are skipped until it goes on
  bool will_look_ = false;  ///< a disk_waited is under way
};

}  // namespace troupe
