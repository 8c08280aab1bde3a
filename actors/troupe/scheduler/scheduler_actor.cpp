#include "troupe/scheduler/scheduler_actor.hpp"

namespace troupe {

scheduler_state::scheduler_state(caf::event_based_actor* self, scheduler_options options)
    : self_(self),
      options_(std::move(options)),
      node_restored_(static_cast<std::size_t>(options_.world_size)),
      last_finished_(now()),
      disk_(now()) {}

caf::behavior scheduler_state::make_behavior() {
  return {[this](const job_known& known) { on_job(known); },
          [this](const devices_known& known) {
            if (known.generation == options_.generation) devices_ = known.devices;
          },
          [this](const call_entered& entered) { on_entered(entered); },
          [this](const copies_held& held) { on_copies(held); },
          [this](const node_restored& restored) { on_restored(restored); },
          [this](const step_done& done) { on_step_done(done); },
          [this](const retry_grant&) { on_retry_grant(); },
          [this](const node_progress& seen) { on_progress(seen); },
          [this](const gathered_received& taken) { on_gathered(taken); },
          [this](const cancel_training& order) { on_cancel(order); },
          [this](const stop_job& order) { on_stop(order); },
          [this](const check_stop&) {
            if (phase_ == phase::gathering && calls_.entered().empty()) end_stopped();
          },
          [this](const save_timed_out&) { end_non_finite(); },
          [this](const check_disk_wait&) {
            check_disk_wait_pending_ = false;
            extend_grant();
          },
          [this](const cut_reached& reached) { on_cut_reached(reached); },
          [this](const pause_requested& wanted) { on_pause_requested(wanted); },
          [this](const part_held& held) { on_held(held); },
          [this](const part_written& written) { on_written(written); },
          [this](const replicas_lost& lost) { on_replicas_lost(lost); },
          [this](const replicas_wanted& wanted) { on_replicas_wanted(wanted); },
          [this](const writes_lost& lost) { on_writes_lost(lost); },
          [this](const disk_writer_replaced& replaced) { on_disk_writer_replaced(replaced); },
          [this](const parameters_arrived& arrived) { on_parameters(arrived); }};
}

void scheduler_state::fail(const std::string& cause) {
  options_.log->info("job failed cause=\"{}\"",
                     cause);  // info, because the program gets it as the call's error
  options_.members->fail_job(cause);
}

}  // namespace troupe
