// supervisor_state: samples the progress of its node's devices, and reports it to the scheduler when one of
// them makes none.
#include <algorithm>
#include <utility>

#include "troupe/scheduler/stall_watch.hpp"
#include "troupe/supervisor/supervisor_actor.hpp"

namespace troupe {

/// Heartbeats come from another thread and show only that the process is alive.
void supervisor_state::begin_watching() {
  if (options_.progress_timeout.count() == 0) return;
  looked_ = self_->clock().now();
  self_->delayed_send(caf::actor_cast<caf::actor>(self_->address()),
                      progress_interval(options_.progress_timeout), check_progress{});
}

void supervisor_state::on_look() {
  auto limit = std::chrono::duration<double>(options_.progress_timeout);
  // Time in which the process or machine was suspended does not count.
  std::chrono::duration<double> most = 2 * progress_interval(options_.progress_timeout);
  children_.progress().sample(std::min<std::chrono::duration<double>>(self_->clock().now() - looked_, most));
  begin_watching();
  if (auto stuck = children_.progress().stuck(limit.count());
      !stuck.empty() && options_.stuck && !options_.stuck->exchange(true))
    options_.log->warn("{} of this process does not return from the program's code", stuck);
  // A program without a Trainer has no devices to report, but may wait in a barrier.
  bool is_in_barrier = calls_.current() && calls_.current()->kind == call_kind::barrier;
  bool stands_still = children_.progress().longest_s() >= limit.count() / 4;
  if (phase_ != phase::active || !(stands_still || is_in_barrier)) return;
  node_progress told{generation_, options_.rank, {}, 0, 0};
  children_.progress().describe(told);
  self_->send(scheduler_, told);
}

/// The scheduler requests a restart. The cause names device, action and step, so an equal cause means that no
/// step was completed in between.
void supervisor_state::on_restart_requested(const restart_requested& wanted) {
  if (wanted.generation != generation_ || phase_ != phase::active) return;
  num_same_stalls_ = std::exchange(stall_, wanted.cause) == wanted.cause ? num_same_stalls_ + 1 : 1;
  if (num_same_stalls_ > options_.restarts.compute.intensity)
    return fail(wanted.cause + " (and again after " + std::to_string(options_.restarts.compute.intensity) +
                " restarts)");
  restart_generation(wanted.cause);
}

/// A tensor that is not authenticated has an unknown sender (rank -1) and is ignored, since any process may
/// send to a port. If it was a damaged tensor of the job, the wait for it shows as a stall.
void supervisor_state::on_tensor_lost(const tensor_lost& lost) {
  if (lost.generation != generation_ || phase_ != phase::active) return;
  auto cause = "a tensor " +
               (lost.rank < 0 ? std::string() : "from rank " + std::to_string(lost.rank) + " ") +
               "was lost on rank " + std::to_string(options_.rank) + ": " + lost.cause;
  options_.log->warn("{}", cause);
  if (lost.rank >= 0) restart_generation(cause);
}

}  // namespace troupe
