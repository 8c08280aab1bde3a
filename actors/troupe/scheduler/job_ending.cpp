#include "troupe/scheduler/job_ending.hpp"

#include <utility>

namespace troupe::actors::scheduler {

void job_ending::fail(const std::string& cause, failure_kind kind) {
  // info, because the program gets it as the call's error
  options_.log->info("job failed cause=\"{}\"", cause);
  options_.members->fail_job(cause, kind);
}

bool job_ending::has_nothing_to_save() const {
  // A process that was restarted learns the job, and where it saves, from its program; others may hold the
  // state.
  if (!job_.known.job) return options_.generation == 1;
  if (job_.job().snapshots.folder.empty()) return true;
  if (!job_.is_restored && options_.generation > 1) return false;
  return job_.is_running() ? job_.position == commits_.step_on_disk().value_or(0) : !job_.is_unsaved;
}

void job_ending::end_stopped() {
  if (std::exchange(stopped_, true)) return;
  options_.members->stopped(text_of_stop());
}

/// The summary of a stop: "at step 117, which is saved in snapshots: ...".
std::string job_ending::text_of_stop() const {
  if (!job_.known.job && options_.generation > 1)
    return "before rank " + std::to_string(options_.rank) +
           ", which was restarted, came to a call of the job; what was saved in a snapshot folder before is "
           "there: "
           "--resume continues from it";
  if (!job_.known.job) return "before it trained anything";
  if (options_.generation == 1 && !job_.is_restored && job_.job().begin_with)
    return "before it went on from step " + std::to_string(job_.job().begin_with->step) +
           ", which is saved in " + job_.job().snapshots.folder.string() + ": --resume continues from there";
  if (job_.position == 0 && (job_.is_restored || options_.generation == 1)) return "before its first step";
  auto where =
      job_.is_restored ? "at step " + std::to_string(job_.position) : std::string("between two calls");
  const auto& folder = job_.job().snapshots.folder;
  const auto& on_disk = commits_.step_on_disk();
  if (folder.empty())
    return where + ". There is no snapshot folder, so its work is lost: --snapshot-dir FOLDER keeps it";
  if (job_.is_restored && on_disk == job_.position)
    return where + ", which is saved in " + folder.string() + ": --resume continues from there";
  if (on_disk)
    return where + "; the last step saved in " + folder.string() + " is " + std::to_string(*on_disk) +
           ": --resume continues from there";
  if (job_.is_running())
    return where + ", which could not be saved in " + folder.string() +
           ": see the warnings before. What was saved there earlier is kept: --resume continues from it";
  return where + "; --resume continues from the newest snapshot in " + folder.string();
}

bool job_ending::continues_after_non_finite(const messages::step_done& done) {
  auto found = "step " + std::to_string(done.step + 1) + ", " + done.non_finite + " is infinite or NaN";
  if (job_.job().on_non_finite != non_finite_policy::stop) {
    options_.log->warn("{}: the step is skipped", found);
    return true;
  }
  job_.non_finite = found;
  last_finite_ = done.step;
  self_->delayed_send(self_, options_.save_timeout, messages::save_timed_out{});
  save_last_finite();
  return false;
}

void job_ending::save_last_finite() {
  if (!job_.job().snapshots.folder.empty() && commits_.is_uncommitted(last_finite_)) return;
  auto last = commits_.unsaved_step();
  if (!last) return end_non_finite();
  if (commits_.is_pending(*last)) return;
  if (last == requested_) return end_non_finite();  // it could not be written
  requested_ = last;
  commits_.write(*last);
}

void job_ending::end_non_finite() {
  if (std::exchange(failed_, true)) return;
  auto text = *job_.non_finite + ". Training ends";
  const auto& folder = job_.job().snapshots.folder;
  if (folder.empty())
    text += ", and its work is lost: --snapshot-dir FOLDER keeps the last finite state";
  else if (commits_.step_on_disk())
    text += "; the last finite state saved in " + folder.string() + " is of step " +
            std::to_string(*commits_.step_on_disk());
  else
    text += "; no snapshot was written to " + folder.string() + " since this generation began";
  fail(text +
       ". A lower --learning-rate or --clip-grad-norm may help; --on-non-finite skip skips such steps, "
       "go_on ignores them");
}

}  // namespace troupe::actors::scheduler
