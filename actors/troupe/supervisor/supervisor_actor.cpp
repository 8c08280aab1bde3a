#include "troupe/supervisor/supervisor_actor.hpp"

#include <caf/exit_reason.hpp>
#include <caf/send.hpp>
#include <utility>

#include "troupe/actor/failure.hpp"
#include "troupe/scheduler/messages.hpp"

namespace troupe {

supervisor_state::supervisor_state(caf::event_based_actor* self, supervisor_options options)
    : self_(self),
      options_(std::move(options)),
      calls_(std::make_shared<call_log>(
          [log = options_.log](const std::string& problem) { log->warn("{}", problem); })) {
  self_->set_down_handler([this](const caf::down_msg& down) { on_down(down); });
  self_->set_exception_handler([this](std::exception_ptr& thrown) {
    auto problem = failure_from(thrown);
    give_up("the supervisor of rank " + std::to_string(options_.rank) + " failed: " + describe(problem));
    return problem;
  });
}

supervisor_state::~supervisor_state() {
  for (const auto& [address, one] : children_)
    if (auto child = caf::actor_cast<caf::actor>(address))
      caf::anon_send_exit(child, caf::exit_reason::user_shutdown);
}

caf::behavior supervisor_state::make_behavior() {
  return {[this](const define_job& order) { on_define(order); },
          [this](const add_source& added) {
            sources_.push_back(added.source);
            if (loader_) self_->send(loader_, added);
          },
          [this](const enter_call& entered) { on_enter(entered); },
          [this](const program_took& took) { on_took(took); },
          [this](const fetch_kept& wanted) { on_fetch(wanted); },
          [this](const cancel_call& order) { on_cancel(order); },
          [this](const fence_raised& fence) { on_fence(fence); },
          [this](const view_formed& formed) { on_view(formed); },
          [this](const restore_order& order) { on_restore(order); },
          [this](const snapshot_failed& failed) { on_snapshot_failed(failed); },
          [this](const write_copies& order) { on_write_copies(order); },
          [this](const state_arrived& arrived) { on_state(arrived); },
          [this](const want_results& wanted) { on_want_results(wanted); },
          [this](const call_finished& finished) { on_finished(finished); },
          [this](const peer_broken& broken) { on_peer_broken(broken); },
          [this](const tensor_lost& lost) { on_tensor_lost(lost); },
          [this](const restart_wanted& wanted) { on_restart_wanted(wanted); },
          [this](const look_at_progress&) { on_look(); },
          [this](const generation_wanted& wanted) {
            options_.members->request_generation(wanted.current, wanted.cause);
          },
          [this](const recovery_done& done) {
            if (done.report.generation == generation_) interrupted_step_ = 0;
            options_.client->put(done.report);
          },
          [this](const job_over& over) { options_.client->put(over); },
          [this](const stop_wanted& wanted) { on_stop(wanted); },
          [this](const job_was_stopped& done) {
            options_.client->put(job_stop{done.signal, done.what});
          },
          [this](const job_ended& ended) { options_.client->put(job_failure{ended.cause}); }};
}

void supervisor_state::on_define(const define_job& order) {
  bool is_first = !job_;
  if (job_) stop_children();
  job_ = order.job;
  described_in_ = 0;
  spawn_children();
  if (is_first) begin_watching();
  if (phase_ == phase::active && local_scheduler_) give_job_to_scheduler();
}

/// The scheduler of this generation hears of it, and those of later ones when they are started.
void supervisor_state::on_stop(const stop_wanted& wanted) {
  stop_signal_ = wanted.signal;
  if (local_scheduler_) self_->send(local_scheduler_, stop_job{stop_signal_});
}

/// This process cannot go on: it is lost for the job, and the job with it if there is no other.
void supervisor_state::give_up(const std::string& cause) {
  options_.log->error("{}", cause);
  if (options_.world_size > 1) return options_.members->suspect(options_.rank, cause);
  options_.client->put(job_failure{cause});
  fail(cause);
}

}  // namespace troupe
