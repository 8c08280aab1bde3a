#include "troupe/scheduler/call_runner.hpp"

#include <algorithm>
#include <utility>

#include "troupe/job/finished_calls.hpp"

namespace troupe::actors::scheduler {

using phase = job_state::phase;

call_runner::call_runner(caf::event_based_actor* self, const scheduler_options& options, job_state& job,
                         snapshot_commits& commits, job_ending& ending)
    : self_(self),
      options_(options),
      job_(job),
      commits_(commits),
      ending_(ending),
      results_(self, options, [this] { continue_entering(); }),
      pauses_(self, options),
      credits_(self, options, job, pauses_.pause(), commits),
      restore_(
          self, options, job, commits, ending,
          {[this](const std::string& why) { refuse_call(why); }, [this] { return catch_up(); },
           [this](const job::call_log& recorded, std::uint64_t step) { return repeat(recorded, step); }}),
      last_finished_(self->clock().now()) {}

void call_runner::enter(const messages::call_entered& entered) {
  pauses_.learn(entered.pause);
  calls_.enter(entered.rank, entered.request, entered.description_hash);
  if (!entered.description.fields().empty()) calls_.learn(entered.rank, entered.description);
  if (!job_.is_restored) job_.interrupted_step = std::max(job_.interrupted_step, entered.interrupted_step);
  // The log may contain the result of the call that this process's program is still waiting in.
  results_.set_known(entered.rank, std::min<std::uint64_t>(entered.num_completed, entered.request.index));
  continue_entering();
}

void call_runner::continue_entering() {
  if (results_.must_ask()) return;
  results_.catch_up(calls_.entered());
  if (job_.now == phase::gathering && calls_.is_complete(options_.world_size, num_completed())) begin_call();
}

bool call_runner::catch_up() {
  if (request().index >= num_completed()) return false;
  results_.catch_up(calls_.entered());
  return true;
}

/// Ends the current call with its recorded result. Computed from the snapshot's state, an evaluation of an
/// earlier step would be one of later weights.
bool call_runner::repeat(const job::call_log& recorded, std::uint64_t step) {
  auto result =
      job::result_to_repeat({recorded, *options_.completed, job_.job().first_call}, calls_.hash_of_request());
  if (result) {
    publish(*result);
    return true;
  }
  if (request().target_step < step)
    options_.log->warn(
        "--resume: call number {} ({} at step {}) is not what the job that wrote the snapshot did there: it "
        "and those after it are answered with the state of step {}",
        request().index, name_of(request()), request().target_step, step);
  return false;
}

void call_runner::begin_call() {
  if (auto disagreement = calls_.disagreement()) return refuse_call(*disagreement);
  if (open_step_ && request().kind != job::call_kind::optimizer_step &&
      request().kind != job::call_kind::barrier)
    return refuse_call("a call came between forward_backward and optimizer_step: make that one first");
  pauses_.open();
  carry_out_pauses();
  result_ = empty_result();
  result_.problem = calls_.problems();
  if (!result_.problem.empty()) return finish_call(result_);
  if (job_.is_restored || request().kind == job::call_kind::barrier) return continue_call();
  restore_.begin();
}

void call_runner::on_restored(const messages::process_restored& restored) {
  if (!restore_.on_restored(restored)) return;
  options_.members->report(options_.generation, cluster::recovery_phase::restored);
  if (job_.interrupted_step <= job_.position) job_.interrupted_step = 0;
  continue_call();
  options_.members->report(options_.generation, cluster::recovery_phase::rebuilt);
  if (job_.interrupted_step == 0)
    options_.members->report(options_.generation, cluster::recovery_phase::replayed);
}

/// If nothing of the previous job was restored, this process was restarted, and the copies of others belong
/// to the newest job: they are kept.
void call_runner::forget_job() {
  if (!job_.is_restored) return;
  job_.is_restored = false;
  job_.interrupted_step = job_.position = 0;
  job_.metrics = {};
  job_.is_unsaved = false;
  open_step_.reset();
  restore_.forget_job();
  commits_.forget_job();
}

/// Continues the call from the job's position: first replays missing steps, then does the call's own work.
void call_runner::continue_call() {
  job_.now = phase::running;
  const auto& wanted = request();
  if (job_.is_stopping && (ending_.has_nothing_to_save() || job_.position >= wanted.target_step))
    return ending_.end_stopped();
  if (wanted.kind == job::call_kind::barrier) {
    // A barrier needs no restored state; a recovery during a barrier ends with it.
    if (!job_.is_restored)
      for (auto reached : {cluster::recovery_phase::restored, cluster::recovery_phase::rebuilt,
                           cluster::recovery_phase::replayed})
        options_.members->report(options_.generation, reached);
    return finish_call(result_);
  }
  if (job_.position < wanted.target_step) return train_on();
  bool is_forward_only = wanted.kind == job::call_kind::evaluate || wanted.kind == job::call_kind::predict;
  if (is_forward_only && wanted.num_batches > 0) {
    auto at_once = static_cast<std::uint64_t>(job_.job().training.num_evaluating_replicas());
    auto num_steps = (wanted.num_batches + at_once - 1) / at_once;
    return start(wanted.kind, wanted.source, 0, num_steps, last_copy::if_due);
  }
  if (wanted.kind == job::call_kind::record) result_.value = calls_.entered().at(0).value;
  if (is_answered_at_once(wanted.kind)) return start(wanted.kind, 0, 0, 1, last_copy::if_due);
  if (wanted.kind == job::call_kind::train || is_half_step(wanted.kind)) result_.metrics = job_.metrics;
  finish_call(result_);
}

/// Refuses the call in all processes, each of which ends with bad_input.
void call_runner::refuse_call(const std::string& why) {
  options_.log->error("call refused cause=\"{}\"", why);
  result_ = empty_result();
  result_.refused = why;
  finish_call(result_);
}

job::call_result call_runner::empty_result() const {
  job::call_result result;
  result.index = request().index;
  result.request_hash = calls_.hash_of_request();
  result.kind = request().kind;
  result.source = request().source;
  return result;
}

/// A job that is to stop has its last state saved by the next call, unless none comes.
void call_runner::finish_call(job::call_result result) {
  // Before anything is restored, the steps done are known from the previous call of the same job.
  bool knows = !job_.is_restored && num_completed() > 0 && job_.known.job &&
               options_.completed->newest().index >= job_.job().first_call;
  result.steps_done = knows ? options_.completed->newest().steps_done : job_.position;
  if (job_.is_restored) result.replays_from = commits_.replays_from();
  publish(result);
}

void call_runner::publish(const job::call_result& result) {
  if (result.kind == job::call_kind::train && result.refused.empty())
    last_training_ = std::make_shared<const job::call_result>(result);
  job_.now = phase::gathering;
  pauses_.end();
  calls_.clear();
  results_.publish(result);
  save_if_standing();
  if (job_.is_stopping) check_stop_later();
}

// ---- the running call

/// Of a job that is to stop only one step is done, whose state is saved.
void call_runner::start(job::call_kind kind, std::uint32_t source, std::uint64_t first, std::uint64_t end,
                        last_copy copied) {
  auto activity = request();
  activity.kind = kind;
  activity.source = source;
  open_step_.reset();
  if (job_.is_stopping) {
    end = std::min(end, first + 1);
    copied = last_copy::always;
  }
  // Steps that the program saw complete before a failure are replayed even if the call is cancelled.
  if (kind == job::call_kind::train && is_cancelled())
    end = std::min(end, std::max(first + 1, job_.interrupted_step));
  const auto& training = job_.job().training;
  bool ends_at_gradients =
      takes_new_steps_ && request().kind == job::call_kind::forward_backward && !job_.is_stopping;
  auto to = ends_at_gradients ? gradients_cut(training, first) : step_cut(training, end);
  credits_.begin(activity, first, to, copied);
  hash_ = distributed_hash(job_.num_stages() * static_cast<std::size_t>(job_.job().placed.num_shards()));
  received_.clear();
  metrics_so_far_.clear();
  last_finished_ = self_->clock().now();
  if (!is_answered_at_once(kind))
    pauses_.begin({activity.index, kind, kind == job::call_kind::train && !takes_new_steps_, running_plan(),
                   step_cut(training, first), std::move(to)});
  run_activity();
}

void call_runner::run_activity() {
  pauses_.tell_if_paused();
  carry_out_pauses();
  credits_.extend();
}

std::shared_ptr<const plan> call_runner::shared_running_plan() const {
  if (activity().kind != job::call_kind::evaluate && activity().kind != job::call_kind::predict)
    return {job_.known.job, &job_.job().training};
  return std::make_shared<const plan>(running_plan());
}

plan call_runner::running_plan() const {
  if (activity().kind != job::call_kind::evaluate && activity().kind != job::call_kind::predict)
    return job_.job().training;
  return forward_projection(job_.job().training, activity().num_microbatches);
}

void call_runner::on_step_done(const messages::step_done& done) {
  if (done.generation != options_.generation || done.call != activity().index || !job_.is_running() ||
      job_.non_finite)
    return;
  if (!done.non_finite.empty() && !ending_.continues_after_non_finite(done)) return;
  measured_.add(done.step + 1, done.device, done.actions,
                static_cast<std::size_t>(job_.job().training.num_job_devices()));
  if (done.step + 1 == activity().target_step)
    result_.last_step.insert(result_.last_step.end(), done.actions.begin(), done.actions.end());
  metrics_so_far_[done.device] = done.metrics;
  for (const auto& step : credits_.add(done)) on_finished(step);
  if (pauses_.add_reached(done.device, {done.step + 1, 0})) note_standing();
  credits_.extend();
  if (!credits_.is_complete()) return;
  if (activity().kind == job::call_kind::evaluate) return finish_call(result_);
  if (activity().kind == job::call_kind::predict) return finish_if_all_received();
  finish_training_if_safe();
}

void call_runner::proceed() {
  credits_.extend();
  save_if_standing();
  finish_training_if_safe();
}

void call_runner::on_listed(const messages::parameters_listed& listed) {
  if (listed.generation != options_.generation || !is_hashing(listed.call)) return;
  if (!listed.problem.empty()) {
    result_.problem = listed.problem;
    return finish_call(result_);
  }
  if (hash_.add({listed.stage, listed.replica}, listed.names, listed.firsts)) go_on_with_hash();
}

void call_runner::on_hashed(const messages::parameters_hashed& hashed) {
  if (hashed.generation != options_.generation || !is_hashing(hashed.call)) return;
  if (hash_.on_hashed(hashed.num_hashed, hashed.state)) go_on_with_hash();
}

void call_runner::go_on_with_hash() {
  auto turn = hash_.next_turn();
  if (!turn) {
    result_.weights_sha256 = hash_.hex();
    return finish_call(result_);
  }
  const auto& training = job_.job().training;
  auto [stage, replica] = turn->holder;
  auto device = training.job_device(training.mesh.lane_at(static_cast<int>(replica), 0),
                                    training.device_of_stage[stage]);
  self_->send(job_.devices[static_cast<std::size_t>(device)],
              messages::hash_parameters{options_.generation, activity().index, stage, turn->num_hashed,
                                        std::move(turn->names), std::move(turn->state)});
}

void call_runner::on_received(const messages::gathered_received& received) {
  auto kind = activity().kind;
  bool gathers =
      kind == job::call_kind::gather || kind == job::call_kind::predict || kind == job::call_kind::memory;
  if (received.generation != options_.generation || received.call != activity().index || !job_.is_running() ||
      !gathers || !received_.insert(received.rank).second)
    return;
  if (!received.problem.empty())
    result_.problem += (result_.problem.empty() ? "rank " : "; rank ") + std::to_string(received.rank) +
                       ": " + received.problem;
  finish_if_all_received();
}

/// The call ends when all receiving programs have their tensors. If a process is lost before, all processes
/// repeat the call.
void call_runner::finish_if_all_received() {
  std::size_t num_receivers = 0;
  for (int rank = 0; rank < options_.world_size; ++rank) num_receivers += activity().delivers_to(rank);
  if (received_.size() < num_receivers) return;
  if (activity().kind == job::call_kind::predict && !credits_.is_complete()) return;
  finish_call(result_);
}

// ---- from programs and users

/// Granted steps are completed, since devices may be in different steps; then one last step ends the call.
void call_runner::on_cancel(const messages::cancel_training& command) {
  cancelled_call_ = command.call;
  if (job_.is_running() && activity().kind == job::call_kind::train && is_cancelled()) credits_.shorten();
}

void call_runner::on_pause_requested(const messages::pause_requested& wanted) {
  if (wanted.generation != options_.generation) return;  // its supervisor repeats it in this one
  pauses_.add(wanted);
  carry_out_pauses();
}

void call_runner::carry_out_pauses() {
  if (!pauses_.carry_out(credits_.granted())) return;
  note_standing();
  if (job_.is_running()) credits_.extend();
}

void call_runner::on_cut_reached(const messages::cut_reached& reached) {
  if (reached.generation != options_.generation || reached.call != activity().index || !job_.is_running())
    return;
  metrics_so_far_[reached.device] = reached.metrics;
  if (pauses_.add_reached(reached.device, reached.position)) note_standing();
  finish_training_if_safe();
}

/// A paused job that has been restored is again where it was, if within a step: the recovery is over.
void call_runner::note_standing() {
  if (pause().stands() && job_.interrupted_step != 0) end_recovery();
  save_if_standing();
}

/// A job that trains writes it with one of its next steps.
void call_runner::save_if_standing() {
  bool trains =
      job_.is_running() && (activity().kind == job::call_kind::train || is_half_step(activity().kind));
  if (job_.is_restored && (!trains || pause().stands())) commits_.save_held();
}

void call_runner::stop() {
  if (std::exchange(job_.is_stopping, true)) return;
  bool recovering = !job_.is_restored && options_.generation > 1;
  bool saved = ending_.has_nothing_to_save();
  if (job_.is_running() && activity().kind == job::call_kind::train && !saved) return credits_.shorten();
  bool is_between = job_.now == phase::gathering && !recovering && !job_.is_unsaved;
  if (job_.is_running() || is_between || saved) return ending_.end_stopped();
  check_stop_later();
}

/// A process in a call enters it again at once. If none does within this time, all are between calls.
void call_runner::check_stop_later() {
  self_->delayed_send(self_, std::chrono::seconds(1), messages::check_stop{});
}

}  // namespace troupe::actors::scheduler
