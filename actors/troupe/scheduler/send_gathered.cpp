// scheduler_state: ends calls that deliver tensors to programs, and training calls that a program cancels.
#include <algorithm>

#include "troupe/scheduler/scheduler_actor.hpp"

namespace troupe {

void scheduler_state::on_gathered(const gathered_received& taken) {
  bool gathers = activity_.kind == call_kind::gather || activity_.kind == call_kind::predict;
  if (taken.generation != options_.generation || taken.call != activity_.index || phase_ != phase::running ||
      !gathers || !taken_.insert(taken.rank).second)
    return;
  if (!taken.problem.empty())
    result_.problem +=
        (result_.problem.empty() ? "rank " : "; rank ") + std::to_string(taken.rank) + ": " + taken.problem;
  finish_if_all_taken();
}

/// The call ends when all receiving programs have their tensors. If a process is lost before, all processes
/// repeat the call.
void scheduler_state::finish_if_all_taken() {
  std::size_t num_receivers = 0;
  for (int rank = 0; rank < options_.world_size; ++rank) num_receivers += activity_.delivers_to(rank) ? 1 : 0;
  if (taken_.size() < num_receivers) return;
  if (activity_.kind == call_kind::predict && ledger_.complete() < end_) return;
  finish_call(result_);
}

/// Granted steps are completed, since devices may be in different steps; then one last step with a state copy
/// ends the call, as at every end of a call.
void scheduler_state::on_cancel(const cancel_training& order) {
  cancelled_call_ = order.call;
  if (phase_ != phase::running || activity_.kind != call_kind::train || !is_cancelled()) return;
  end_ = std::min(end_, copies_planned_ + 1);
  extend_grant();
}

}  // namespace troupe
