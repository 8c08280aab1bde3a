// scheduler_state: what is lost with a node's replica keeper or disk writer, which the node restarts in the
// same generation.
#include "troupe/recovery/replica.hpp"
#include "troupe/scheduler/scheduler_actor.hpp"

namespace troupe {

void scheduler_state::on_replicas_lost(const replicas_lost& lost) {
  if (lost.generation == options_.generation && known_.job) held_.lose_replicas(lost.rank, job().parts);
}

/// The peer still holds what it had sent, from the newest committed step on.
void scheduler_state::on_replicas_wanted(const replicas_wanted& wanted) {
  if (wanted.generation != options_.generation) return;
  for (auto owner : kept_by(options_.present, {wanted.rank}))
    self_->send(supervisor_of(owner), replicate_copies{options_.generation});
}

/// The stages write again what they still hold; for the rest they send part_written with a problem, and the
/// snapshot has failed.
void scheduler_state::on_writes_lost(const writes_lost& lost) {
  if (lost.generation != options_.generation || !known_.job || hosts_.empty()) return;
  std::vector<part_id> parts;
  for (const auto& part : job().parts)
    if (host_of(job().placed, hosts_, part.id.of) == member_id{lost.rank}) parts.push_back(part.id);
  for (auto step : disk_.steps_without(parts))
    self_->send(options_.supervisors[static_cast<std::size_t>(lost.rank)],
                write_copies{options_.generation, step});
}

/// Of several commits the earliest comes first: a commit undoes newer snapshots.
void scheduler_state::on_disk_writer_replaced(const disk_writer_replaced& replaced) {
  known_.disk_writer = replaced.disk_writer;
  if (phase_ == phase::finding) on_disk_ ? read_results_on_disk() : search_disk();
  for (const auto& [step, order] : std::map(committing_)) request_commit(order);
}

}  // namespace troupe
