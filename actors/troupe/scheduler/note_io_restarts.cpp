// scheduler_state: what is lost with a node's replica keeper or disk writer, which the node restarts in the
// same generation.
#include "troupe/recovery/replica.hpp"
#include "troupe/scheduler/scheduler_actor.hpp"

namespace troupe {

void scheduler_state::on_replicas_lost(const replicas_lost& lost) {
  if (lost.generation == options_.generation && known_.job) held_.lose_replicas(lost.rank, num_stages());
}

/// The peer still holds what it had sent, from the newest committed step on.
void scheduler_state::on_replicas_wanted(const replicas_wanted& wanted) {
  if (wanted.generation != options_.generation) return;
  if (auto owner = rank_replicated_by(wanted.rank, options_.world_size))
    self_->send(options_.supervisors[static_cast<std::size_t>(*owner)],
                replicate_copies{options_.generation});
}

/// The stages write again what they still hold; for the rest they send part_written with a problem, and the
/// snapshot has failed.
void scheduler_state::on_writes_lost(const writes_lost& lost) {
  if (lost.generation != options_.generation || !known_.job) return;
  auto ranks = job().ranks_of_stages();
  std::vector<std::uint32_t> stages;
  for (std::uint32_t stage = 0; stage < ranks.size(); ++stage)
    if (ranks[stage] == lost.rank) stages.push_back(stage);
  for (auto step : disk_.steps_without(stages))
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
