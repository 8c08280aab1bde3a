// scheduler_state: ends the job when a loss or gradient is infinite or NaN, with the last finite state on
// disk.
//
// The device that found it did not apply the step and copies nothing any more, so that no later step can be
// committed. The newest committed copies in memory are older than that step, and often newer than the newest
// snapshot on disk: they are written there first.
#include "troupe/scheduler/scheduler_actor.hpp"

namespace troupe {

/// Logs the value found. True: training continues (policy skip).
bool scheduler_state::continues_after_non_finite(const step_done& done) {
  auto found = "step " + std::to_string(done.step + 1) + ", " + done.non_finite + " is infinite or NaN";
  if (job().on_non_finite != non_finite_policy::stop) {
    options_.log->warn("{}: the step is skipped", found);
    return true;
  }
  non_finite_ = found;
  save_last_finite();
  return false;
}

void scheduler_state::save_last_finite() {
  auto last = held_.held_by_owners(job().parts);
  if (job().snapshots.folder.empty() || last <= step_on_disk_.value_or(0)) return end_non_finite();
  if (disk_.is_pending(last)) return;  // on_commit_over continues
  disk_.announced(last, now());
  for (const auto& supervisor : options_.supervisors)
    self_->send(supervisor, write_copies{options_.generation, last});
  self_->delayed_send(self_, options_.save_timeout, save_timed_out{});
}

void scheduler_state::end_non_finite() {
  auto text = *non_finite_ + ". Training ends";
  const auto& folder = job().snapshots.folder;
  if (folder.empty())
    text += ", and its work is lost: --snapshot-dir FOLDER keeps the last finite state";
  else if (step_on_disk_)
    text += "; the last finite state saved in " + folder.string() + " is of step " +
            std::to_string(*step_on_disk_);
  else
    text += "; no snapshot was written to " + folder.string() + " since this generation began";
  fail(text +
       ". A lower --learning-rate or --clip-grad-norm may help; --on-non-finite skip skips such steps, "
       "go_on ignores them");
}

}  // namespace troupe
