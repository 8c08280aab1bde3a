#pragma once
#include <caf/event_based_actor.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "troupe/messages/measured_steps.hpp"
#include "troupe/messages/step_history.hpp"
#include "troupe/scheduler/call_results.hpp"
#include "troupe/scheduler/job_ending.hpp"
#include "troupe/scheduler/job_restore.hpp"
#include "troupe/scheduler/pause_control.hpp"
#include "troupe/scheduler/snapshot_commits.hpp"
#include "troupe/scheduler/state/distributed_hash.hpp"
#include "troupe/scheduler/state/entered_calls.hpp"
#include "troupe/scheduler/state/job_state.hpp"
#include "troupe/scheduler/step_credits.hpp"

namespace troupe::actors::scheduler {

/// Runs calls, one after the other. Begins a call when all processes have entered it, restores the state
/// before the first that needs it, replays missing steps, does the call's own work, and publishes its result.
class call_runner {
 public:
  /// All outlive this object.
  call_runner(caf::event_based_actor* self, const scheduler_options& options, job_state& job,
              snapshot_commits& commits, job_ending& ending);

  void enter(const messages::call_entered& entered);
  void on_restored(const messages::process_restored& restored);
  /// The next job: resets the state as in a new generation, except the entered calls.
  void forget_job();
  void repeat_requests() { restore_.repeat_requests(); }

  // the running call
  void on_step_done(const messages::step_done& done);
  void on_listed(const messages::parameters_listed& listed);
  void on_hashed(const messages::parameters_hashed& hashed);
  void on_received(const messages::gathered_received& received);
  void on_retry_credit() { credits_.on_retry(); }
  /// Copies or snapshots have changed: grants steps, and finishes a training call whose last state is safe.
  void proceed();
  void extend_credit() { credits_.extend(); }
  /// Snapshots that are requested are written now if no step is about to be done.
  void save_if_standing();

  // from programs and users
  void on_cancel(const messages::cancel_training& command);
  void on_pause_requested(const messages::pause_requested& wanted);
  void on_cut_reached(const messages::cut_reached& reached);
  void stop();
  void on_check_stop() {
    if (job_.now != job_state::phase::gathering) return;
    if (calls_.entered().empty() || (!job_.known.job && !calls_.has_job())) ending_.end_stopped();
  }

  const entered_calls& entered() const { return calls_; }
  const step_credits& credits() const { return credits_; }
  const job_restore& restore() const { return restore_; }
  const job_pause& pause() const { return pauses_.pause(); }
  /// Whether the program of this rank has not received the running call's tensors.
  bool lacks_tensors(int rank) const { return activity().delivers_to(rank) && !received_.contains(rank); }
  plan running_plan() const;
  /// The same, of the job itself where that is the plan.
  std::shared_ptr<const plan> shared_running_plan() const;
  const messages::step_history& history() const { return history_; }
  const messages::measured_steps& measured() const { return measured_; }
  /// The newest call of this generation that trained; null: none.
  const std::shared_ptr<const job::call_result>& last_training() const { return last_training_; }

 private:
  void continue_entering();
  bool catch_up();
  void begin_call();
  void continue_call();
  void train_on();
  void start(job::call_kind kind, std::uint32_t source, std::uint64_t first, std::uint64_t end,
             last_copy copied);
  void run_activity();
  void go_on_with_step();
  void on_finished(const finished_step& step);
  void finish_training_if_safe();
  void finish_half_step();
  void go_on_with_hash();
  void finish_if_all_received();
  void finish_call(job::call_result result);
  void publish(const job::call_result& result);
  bool repeat(const job::call_log& recorded, std::uint64_t step);
  void refuse_call(const std::string& why);
  job::call_result empty_result() const;
  void carry_out_pauses();
  void note_standing();
  void end_recovery();
  void check_stop_later();
  bool is_hashing(std::uint32_t call) const {
    return job_.is_running() && activity().kind == job::call_kind::hash && activity().index == call;
  }
  bool is_cancelled() const { return takes_new_steps_ && cancelled_call_ == request().index; }
  const job::call_request& request() const { return calls_.request(); }
  const job::call_request& activity() const { return credits_.activity(); }
  std::size_t num_completed() const { return options_.completed->size(); }

  // constant
  caf::event_based_actor* self_;
  const scheduler_options& options_;
  job_state& job_;
  snapshot_commits& commits_;
  job_ending& ending_;

  entered_calls calls_;
  call_results results_;
  pause_control pauses_;
  step_credits credits_;
  job_restore restore_;

  // for those who watch
  messages::step_history history_;
  messages::measured_steps measured_;
  std::shared_ptr<const job::call_result> last_training_;

  // the running call
  job::call_result result_;
  bool takes_new_steps_ = false;  ///< runs steps of the current call, not a replay
  std::optional<cut> open_step_;  ///< where the devices stand between forward_backward and
                                  ///< optimizer_step; none: they are in no step
  std::map<std::uint32_t, program::step_metrics> metrics_so_far_;  ///< by device, of its newest step
  std::optional<std::uint32_t> cancelled_call_;                    ///< the call of the last cancel_training
  std::chrono::steady_clock::time_point last_finished_;
  distributed_hash hash_;
  std::set<int> received_;  ///< ranks whose programs have received their tensors
};

}  // namespace troupe::actors::scheduler
