// call_runner: calls that train, and the replay of their steps.
#include <algorithm>
#include <chrono>
#include <utility>

#include "troupe/posix/unix_time.hpp"
#include "troupe/scheduler/call_runner.hpp"

namespace troupe::actors::scheduler {

/// Trains from the job's position: steps of earlier calls are replayed with the batch source of their call,
/// later ones with that of this call.
void call_runner::train_on() {
  if (open_step_) return go_on_with_step();
  takes_new_steps_ = false;
  auto copied_of = [](job::call_kind kind) {
    return is_half_step(kind) ? last_copy::if_due : last_copy::always;
  };
  if (auto before = options_.completed->trained(job_.position, job_.job().first_call))
    return start(job::call_kind::train, before->source, job_.position, before->steps_done,
                 copied_of(before->kind));
  takes_new_steps_ = request().kind == job::call_kind::train || is_half_step(request().kind);
  start(job::call_kind::train, takes_new_steps_ ? request().source : 0, job_.position, request().target_step,
        copied_of(request().kind));
}

/// The devices stand where forward_backward left them, and go on as if it had not ended: for them it is one
/// call. Pauses belong to this one, since a recovery repeats the whole step in it.
void call_runner::go_on_with_step() {
  auto from = std::move(*open_step_);
  open_step_.reset();
  auto to = step_cut(job_.job().training, request().target_step);
  credits_.go_on(to, job_.is_stopping ? last_copy::always : last_copy::if_due);
  pauses_.begin(
      {request().index, job::call_kind::train, false, running_plan(), std::move(from), std::move(to)});
  run_activity();
}

void call_runner::on_finished(const finished_step& step) {
  // One after the other, in the order of batches: the sum has the bits of one replica that runs them all.
  if (activity().kind == job::call_kind::evaluate)
    for (const auto& each : step.device_metrics) result_.metrics += each;
  if (activity().kind == job::call_kind::evaluate || activity().kind == job::call_kind::predict) return;
  auto finished = self_->clock().now();
  std::chrono::duration<double> step_time = finished - std::exchange(last_finished_, finished);
  job_.position = step.step + 1;
  job_.metrics = step.metrics;
  job_.is_unsaved = true;
  commits_.on_step_done(job_.position, step_time.count(), step.copy_s);
  // Batches that the program gives may be of any size.
  bool is_of_data_set = activity().kind == job::call_kind::train && job_.job().samples_per_run > 0;
  auto num_samples = is_of_data_set ? job_.job().samples_per_run : step.metrics.num_samples;
  history_.add({job_.position, posix::unix_now_ms(), step.metrics.mean_loss(), num_samples, step_time.count(),
                step.span_s, step.busy_s, step.copy_s, step.device_busy_s});
  options_.client->put(
      job::step_progress{job_.position, credits_.end(), step.metrics, commits_.replays_from()});
  options_.members->report(
      cluster::job_progress{options_.generation, job_.position, credits_.end(), step.metrics.mean_loss()});
  if (job_.interrupted_step != 0 && job_.position >= job_.interrupted_step) end_recovery();
}

void call_runner::end_recovery() {
  job_.interrupted_step = 0;
  options_.members->report(options_.generation, cluster::recovery_phase::replayed);
}

/// Finishes fit only when its last state is committed, and on disk if there is a folder.
void call_runner::finish_training_if_safe() {
  if (!job_.is_running() || activity().kind != job::call_kind::train || !credits_.is_complete()) return;
  if (credits_.copied() == last_copy::always) {
    if (commits_.committed_step() < credits_.end() || commits_.is_pending(credits_.end())) return;
    if (job_.is_stopping) return ending_.end_stopped();
    job_.is_unsaved = false;
  }
  if (takes_new_steps_ && is_half_step(request().kind)) return finish_half_step();
  result_.timing = credits_.timing();
  if (is_cancelled()) {
    result_.metrics = job_.metrics;
    return finish_call(result_);
  }
  // Replayed steps of earlier calls are no part of this call's result.
  if (request().kind != job::call_kind::train || job_.position < request().target_step)
    result_ = empty_result();
  continue_call();
}

void call_runner::finish_half_step() {
  result_.metrics = job_.metrics;
  result_.last_step.clear();
  if (request().kind == job::call_kind::forward_backward) {
    result_.metrics = {};
    for (const auto& [device, metrics] : metrics_so_far_) result_.metrics += metrics;
    if (job_.position < request().target_step) open_step_ = credits_.granted();
    if (job_.interrupted_step != 0) end_recovery();
  }
  finish_call(result_);
}

}  // namespace troupe::actors::scheduler
