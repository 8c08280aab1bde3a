// scheduler_state: ends the job after a stop request, once its state is on disk.
#include <utility>

#include "troupe/scheduler/scheduler_actor.hpp"

namespace troupe {

void scheduler_state::on_stop(const stop_job&) {
  if (stopping_) return;
  stopping_ = true;
  bool recovering = !restored_ && options_.generation > 1;
  if (phase_ == phase::running && activity_.kind == call_kind::train && !has_nothing_to_save()) {
    end_ = std::min(end_, copies_planned_ + 1);
    return extend_grant();
  }
  if (phase_ == phase::running || (phase_ == phase::gathering && !recovering) || has_nothing_to_save())
    return end_stopped();
  // A process in a call enters it again at once. If none does within this time, all are between calls.
  self_->delayed_send(self_, std::chrono::seconds(1), check_stop{});
}

/// There is no snapshot folder, or its newest snapshot is up to date.
bool scheduler_state::has_nothing_to_save() const {
  if (!known_.job || job().snapshots.folder.empty()) return true;
  if (!restored_ && options_.generation > 1) return false;
  return phase_ != phase::running || position_ == step_on_disk_.value_or(0);
}

void scheduler_state::end_stopped() {
  if (std::exchange(stopped_, true)) return;
  options_.members->stopped(text_of_stop());
}

/// The summary of a stop: "at step 117, which is saved in snapshots: ...".
std::string scheduler_state::text_of_stop() const {
  if (!known_.job) return "before it trained anything";
  if (position_ == 0 && (restored_ || options_.generation == 1)) return "before its first step";
  auto where = restored_ ? "at step " + std::to_string(position_) : std::string("between two calls");
  const auto& folder = job().snapshots.folder;
  if (folder.empty())
    return where + ". There is no snapshot folder, so its work is lost: --snapshot-dir FOLDER keeps it";
  if (restored_ && step_on_disk_ == position_)
    return where + ", which is saved in " + folder.string() + ": --resume continues from there";
  if (step_on_disk_)
    return where + "; the last step saved in " + folder.string() + " is " + std::to_string(*step_on_disk_) +
           ": --resume continues from there";
  if (phase_ == phase::running)
    return where + ", which could not be saved in " + folder.string() + ": see the warnings before";
  return where + "; --resume continues from the newest snapshot in " + folder.string();
}

}  // namespace troupe
