// The part of scheduler_state that ends calls which give tensors to programs, and training that a program
// wants to end.
#include <algorithm>

#include "troupe/scheduler/scheduler_actor.hpp"

namespace troupe {

void scheduler_state::on_gathered(const gathered_taken& taken) {
  bool gathers = activity_.kind == call_kind::gather || activity_.kind == call_kind::predict;
  if (taken.generation != options_.generation || taken.call != activity_.index || phase_ != phase::running ||
      !gathers || !taken_.insert(taken.rank).second)
    return;
  if (!taken.problem.empty())
    result_.problem +=
        (result_.problem.empty() ? "rank " : "; rank ") + std::to_string(taken.rank) + ": " + taken.problem;
  finish_if_all_taken();
}

/// A call is over when the programs have what they wait for: one that is lost before makes the call again,
/// together with all others.
void scheduler_state::finish_if_all_taken() {
  std::size_t num_receivers = 0;
  for (int rank = 0; rank < options_.world_size; ++rank) num_receivers += activity_.gives_to(rank) ? 1 : 0;
  if (taken_.size() < num_receivers) return;
  if (activity_.kind == call_kind::predict && ledger_.complete() < end_) return;
  finish_call(result_);
}

/// Steps that are granted are computed to their end, since devices may be in different ones; one more ends
/// the call, and with it goes a copy, as at every end.
void scheduler_state::on_cancel(const cancel_training& order) {
  cancelled_call_ = order.call;
  if (phase_ != phase::running || activity_.kind != call_kind::train || !is_cancelled()) return;
  end_ = std::min(end_, granted_end_ + 1);
  extend_grant();
}

}  // namespace troupe
