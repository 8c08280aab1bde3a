// scheduler_state: the change from one job of the processes to the next.
#include "troupe/scheduler/scheduler_actor.hpp"

namespace troupe {

/// All calls of the previous job have ended when a process defines the next one.
void scheduler_state::on_job(const job_known& known) {
  bool is_next = known_.job && known_.job->number != known.job->number;
  known_ = known;
  if (is_next && restored_) forget_previous_job();
}

/// Resets the state as in a new generation, except the entered calls. Nodes hold no copies of the next job
/// yet. If nothing of the previous job was restored, this node was restarted, and the copies of others belong
/// to the newest job: they are kept.
void scheduler_state::forget_previous_job() {
  restored_ = false;
  told_committed_ = 0;
  node_restored_.assign(node_restored_.size(), false);
  on_disk_.reset();
  step_on_disk_.reset();
  interrupted_step_ = position_ = 0;
  metrics_ = {};
  copies_ = {};
  held_ = {};
  disk_ = disk_snapshots(now());
  skipping_ = false;
}

}  // namespace troupe
