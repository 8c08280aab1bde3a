#include "troupe/scheduler/scheduler_actor.hpp"

#include <utility>

namespace troupe::actors::scheduler {

scheduler_state::scheduler_state(caf::event_based_actor* self, scheduler_options options)
    : self_(self),
      options_(std::move(options)),
      commits_(self, options_, job_, [this] { on_commit_over(); }),
      ending_(self, options_, job_, commits_),
      calls_(self, options_, job_, commits_, ending_),
      progress_(self, options_, job_, calls_, ending_) {}

caf::behavior scheduler_state::make_behavior() {
  return {
      [this](const messages::job_known& known) { on_job(known); },
      [this](const messages::devices_known& known) { on_devices(known); },
      [this](const messages::call_entered& entered) { on_entered(entered); },
      [this](const messages::copies_held& held) { on_copies(held); },
      [this](const messages::process_restored& restored) { calls_.on_restored(restored); },
      [this](const messages::step_done& done) { calls_.on_step_done(done); },
      [this](const messages::retry_credit&) { calls_.on_retry_credit(); },
      [this](const messages::process_progress& seen) { progress_.on_progress(seen); },
      [this](const messages::gathered_received& received) { calls_.on_received(received); },
      [this](const messages::cancel_training& command) { calls_.on_cancel(command); },
      [this](const messages::stop_job&) { calls_.stop(); },
      [this](const messages::check_stop&) { calls_.on_check_stop(); },
      [this](const messages::save_timed_out&) { ending_.end_non_finite(); },
      [this](const messages::check_disk_wait&) { on_check_disk_wait(); },
      [this](const messages::cut_reached& reached) { calls_.on_cut_reached(reached); },
      [this](const messages::pause_requested& wanted) { calls_.on_pause_requested(wanted); },
      [this](const messages::part_held& held) { on_held(held); },
      [this](const messages::part_written& written) { on_written(written); },
      [this](const messages::replicas_lost& lost) { commits_.on_replicas_lost(lost); },
      [this](const messages::replicas_wanted& wanted) { commits_.on_replicas_wanted(wanted); },
      [this](const messages::writes_lost& lost) { commits_.on_writes_lost(lost); },
      [this](const messages::snapshot_writer_replaced& replaced) { on_snapshot_writer_replaced(replaced); },
      [this](const messages::inspect_scheduler& asked) { return on_inspect(asked); },
      [this](const messages::save_snapshot&) { return on_save(); },
      [this](const messages::parameters_listed& listed) { calls_.on_listed(listed); },
      [this](const messages::parameters_hashed& hashed) { calls_.on_hashed(hashed); }};
}

/// All calls of the previous job have ended when a process defines the next one.
void scheduler_state::on_job(const messages::job_known& known) {
  bool is_next = job_.known.job && job_.known.job->number != known.job->number;
  job_.known = known;
  if (is_next) calls_.forget_job();
  commits_.refuse_saves_without_folder();
}

void scheduler_state::on_devices(const messages::devices_known& known) {
  if (known.generation == options_.generation) job_.devices = known.devices;
}

void scheduler_state::on_copies(const messages::copies_held& held) {
  if (held.generation == options_.generation && !job_.is_restored) commits_.set_inventory(held.inventory);
}

void scheduler_state::on_entered(const messages::call_entered& entered) {
  if (entered.generation == options_.generation) calls_.enter(entered);
}

void scheduler_state::on_held(const messages::part_held& held) {
  if (!commits_.on_held(held)) return;
  if (job_.non_finite) return ending_.save_last_finite();
  calls_.proceed();
}

void scheduler_state::on_written(const messages::part_written& written) {
  if (!commits_.on_written(written)) return;
  if (job_.non_finite) return ending_.save_last_finite();
  calls_.proceed();
}

void scheduler_state::on_commit_over() {
  if (job_.non_finite) return ending_.save_last_finite();
  calls_.proceed();
}

void scheduler_state::on_check_disk_wait() {
  commits_.on_check_disk_wait();
  calls_.extend_credit();
}

void scheduler_state::on_snapshot_writer_replaced(const messages::snapshot_writer_replaced& replaced) {
  job_.known.snapshot_writer = replaced.snapshot_writer;
  calls_.repeat_requests();
  commits_.repeat_commits();
}

caf::result<messages::snapshot_saved> scheduler_state::on_save() {
  auto promise = self_->make_response_promise<messages::snapshot_saved>();
  commits_.save(promise);
  calls_.save_if_standing();
  return promise;
}

messages::scheduler_report scheduler_state::on_inspect(const messages::inspect_scheduler& asked) {
  messages::scheduler_report report;
  report.generation = options_.generation;
  report.phase = static_cast<std::uint8_t>(job_.now);
  report.call = static_cast<std::uint32_t>(options_.completed->size());
  if (job_.is_running()) {
    report.activity = calls_.credits().activity();
    report.kind = report.activity.kind;
    if (job_.known.job) report.running = calls_.shared_running_plan();
  }
  report.step = job_.position;
  report.end_step = job_.is_running() ? calls_.credits().end() : job_.position;
  if (job_.known.job) report.committed_step = commits_.committed_step();
  report.step_on_disk = commits_.step_on_disk();
  report.num_pending = commits_.num_pending();
  report.is_stopping = job_.is_stopping;
  report.step_s = commits_.step_time().count();
  report.pause = calls_.pause().state();
  report.job = job_.known.job;
  report.hosts = job_.hosts;
  report.steps = calls_.history().after(asked.after);
  report.measured = calls_.measured().newest();
  report.last_training = calls_.last_training();
  return report;
}

}  // namespace troupe::actors::scheduler
