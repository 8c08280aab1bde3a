// The part of supervisor_state that sees whether the devices of its node get on, and tells the scheduler
// where they are when they do not.
#include <algorithm>
#include <utility>

#include "troupe/scheduler/stall_watch.hpp"
#include "troupe/supervisor/supervisor_actor.hpp"

namespace troupe {

/// Heartbeats come from another thread and tell only that the process lives.
void supervisor_state::begin_watching() {
  if (options_.progress_timeout.count() == 0) return;
  looked_ = self_->clock().now();
  self_->delayed_send(caf::actor_cast<caf::actor>(self_->address()),
                      progress_interval(options_.progress_timeout), look_at_progress{});
}

void supervisor_state::on_look() {
  auto limit = std::chrono::duration<double>(options_.progress_timeout);
  // A process that was suspended, or a machine that was, has not been seen to stand still.
  std::chrono::duration<double> most = 2 * progress_interval(options_.progress_timeout);
  progress_.look(std::min<std::chrono::duration<double>>(self_->clock().now() - looked_, most));
  begin_watching();
  if (auto stuck = progress_.stuck(limit.count());
      !stuck.empty() && options_.stuck && !options_.stuck->exchange(true))
    options_.log->warn("{} of this process does not return from what it does", stuck);
  if (phase_ != phase::active || progress_.longest_s() < limit.count() / 4) return;
  node_progress told{generation_, options_.rank, {}, 0, 0};
  progress_.describe(told);
  self_->send(scheduler_, told);
}

/// Asked for by the scheduler. A cause names device, action and step: the same one again means that no step
/// was done in between, however long that took.
void supervisor_state::on_restart_wanted(const restart_wanted& wanted) {
  if (wanted.generation != generation_ || phase_ != phase::active) return;
  num_same_stalls_ = std::exchange(stall_, wanted.cause) == wanted.cause ? num_same_stalls_ + 1 : 1;
  if (num_same_stalls_ > options_.restarts.intensity)
    return fail(wanted.cause + " (and again after " + std::to_string(options_.restarts.intensity) +
                " restarts)");
  restart_generation(wanted.cause);
}

/// A head that is not authentic says nothing of who sent it: anybody may send to a port. If a tensor of the
/// job was damaged, the wait for it is noticed as a stall.
void supervisor_state::on_tensor_lost(const tensor_lost& lost) {
  if (lost.generation != generation_ || phase_ != phase::active) return;
  auto cause = "a tensor " +
               (lost.rank < 0 ? std::string() : "from rank " + std::to_string(lost.rank) + " ") +
               "was lost on rank " + std::to_string(options_.rank) + ": " + lost.cause;
  options_.log->warn("{}", cause);
  if (lost.rank >= 0) restart_generation(cause);
}

}  // namespace troupe
