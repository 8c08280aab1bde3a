#include "troupe/supervisor/supervisor_actor.hpp"

#include <utility>

#include "troupe/actor/actor_error.hpp"
#include "troupe/scheduler/messages.hpp"

namespace troupe {

supervisor_state::supervisor_state(caf::event_based_actor* self, supervisor_options options)
    : self_(self),
      options_(std::move(options)),
      children_(self, options_),
      tree_(options_.restarts),
      calls_(std::make_shared<call_log>(
          [log = options_.log](const std::string& problem) { log->warn("{}", problem); })) {
  self_->set_down_handler([this](const caf::down_msg& down) { on_down(down); });
  self_->set_exception_handler([this](std::exception_ptr& thrown) {
    auto problem = error_from(thrown);
    give_up("the supervisor of rank " + std::to_string(options_.rank) + " failed: " + describe(problem));
    return problem;
  });
  begin_watching();
}

caf::behavior supervisor_state::make_behavior() {
  return {[this](const define_job& order) { on_define(order); },
          [this](const add_source& added) { children_.add_source(added); },
          [this](const enter_call& entered) { on_enter(entered); },
          [this](const program_received& took) { on_program_received(took); },
          [this](const fetch_cached& wanted) { on_fetch(wanted); },
          [this](const cancel_call& order) { on_cancel(order); },
          [this](const order_pause& order) { on_order_pause(order); },
          [this](const pause_changed& changed) { on_pause_changed(changed); },
          [this](const fence_raised& fence) { on_fence(fence); },
          [this](const view_formed& formed) { on_view(formed); },
          [this](const restore_order& order) { on_restore(order); },
          [this](const snapshot_failed& failed) { on_snapshot_failed(failed); },
          [this](const write_copies& order) { on_write_copies(order); },
          [this](const replicate_copies& order) { on_replicate(order); },
          [this](const copies_committed& committed) { on_committed(committed); },
          [this](const restart_due& due) { on_restart_due(due); },
          [this](const state_arrived& arrived) { on_state(arrived); },
          [this](const want_results& wanted) { return on_want_results(wanted); },
          [this](const call_finished& finished) { return on_finished(finished); },
          [this](const peer_broken& broken) { on_peer_broken(broken); },
          [this](const tensor_lost& lost) { on_tensor_lost(lost); },
          [this](const link_failed& failed) { on_link_failed(failed); },
          [this](const restart_requested& wanted) { on_restart_requested(wanted); },
          [this](const check_progress&) { on_look(); },
          [this](const generation_requested& wanted) {
            options_.members->request_generation(wanted.current, wanted.cause);
          },
          [this](const recovery_done& done) {
            if (done.report.generation == generation_) interrupted_step_ = 0;
            options_.client->put(done.report);
          },
          [this](const job_done& over) { options_.client->put(over); },
          [this](const stop_requested& wanted) { on_stop(wanted); },
          [this](const job_was_stopped& done) {
            options_.client->put(job_stop{done.signal, done.summary});
          },
          [this](const job_ended& ended) { options_.client->put(job_failure{ended.cause}); }};
}

void supervisor_state::on_define(const define_job& order) {
  if (job_) stop_job_children();
  job_ = order.job;
  described_in_ = 0;
  children_.begin_job(job_);
  tree_.set_branches(children_.branches());
  publish_children();
  if (phase_ == phase::active && local_scheduler_) give_job_to_scheduler();
}

/// Stops the children of the previous job, all of whose calls are over.
void supervisor_state::stop_job_children() {
  children_.stop_all();
  forget_restarts();
  restoring_.reset();
  *options_.hosted = {};
  reading_.clear();
  ready_.clear();
  arrived_.clear();
  interrupted_step_ = 0;
  inventory_in_ = asked_in_ = 0;
  ++inquiry_;
}

/// Sent to the scheduler of this generation now, and to those of later generations when they are spawned.
void supervisor_state::on_stop(const stop_requested& wanted) {
  stop_signal_ = wanted.signal;
  if (local_scheduler_) self_->send(local_scheduler_, stop_job{stop_signal_});
}

/// This process cannot continue: leaves the job as lost, or ends the job if it is the only process.
void supervisor_state::give_up(const std::string& cause) {
  options_.log->error("{}", cause);
  if (options_.world_size > 1) return options_.members->suspect(options_.rank, cause);
  options_.client->put(job_failure{cause});
  fail(cause);
}

}  // namespace troupe
