// scheduler_state: decides when copies are due, and commits snapshots whose parts are on disk.
#include <utility>

#include "troupe/actor/actor_error.hpp"
#include "troupe/disk_writer/messages.hpp"
#include "troupe/scheduler/scheduler_actor.hpp"

namespace troupe {

/// The copies due after steps [first, last], a step being named by the number of steps applied.
std::vector<due_copy> scheduler_state::copies_due(std::uint64_t first, std::uint64_t last) {
  auto cadence = job().snapshots.cadence;
  auto on_disk = !job().snapshots.folder.empty();
  if (cadence.memory_every_steps == 0) cadence.memory_every_steps = copies_.steps();
  std::optional<std::uint64_t> announced;
  if (on_disk && disk_.num_pending() == 0)
    announced = next_disk_step(
        {ledger_.complete(), first - 1, last, copies_.step_time(), disk_.since_last(now())}, cadence);
  std::vector<due_copy> copies;
  for (auto step = first; step <= last; ++step) {
    auto due = snapshot_due(step, cadence, announced);
    bool has_room = disk_.num_pending() < disk_snapshots::max_pending;
    due.disk = on_disk && ((due.disk && has_room) || step == end_);
    due.memory = due.disk || step == end_ || step - last_copy_due_ >= cadence.memory_every_steps;
    if (due.memory) {
      copies.push_back({step, due.disk});
      held_.order(step);
      last_copy_due_ = step;
    }
    if (due.disk) disk_.announced(step, now());
  }
  return copies;
}

void scheduler_state::on_held(const part_held& held) {
  if (held.generation != options_.generation) return;
  held_.add(held.rank, held.part, job().parts);
  tell_committed();
  extend_grant();
  finish_training_if_safe();
}

/// Devices hear of it with their grants, and tell their stages and the replica keeper.
void scheduler_state::tell_committed() {
  auto committed = held_.committed_step(job().parts);
  if (committed <= told_committed_) return;
  told_committed_ = committed;
  for (auto member : to_tell_)
    self_->send(supervisor_of(member), copies_committed{options_.generation, committed});
}

void scheduler_state::on_written(const part_written& written) {
  if (written.generation != options_.generation) return;
  if (committing_.contains(written.step)) return;  // written twice, see on_writes_lost
  auto parts = disk_.add(written, job().parts.size());
  if (parts)
    commit(written.step, *std::move(parts));
  else if (!disk_.is_pending(written.step))
    on_snapshot_failed(written.step);
  if (non_finite_ && disk_.num_pending() == 0) return end_non_finite();
  extend_grant();
  finish_training_if_safe();
}

void scheduler_state::commit(std::uint64_t step, std::vector<manifest_part> parts) {
  snapshot_manifest manifest;
  manifest.job_id = job().job_id;
  manifest.step = step;
  manifest.generation = options_.generation;
  manifest.num_stages = num_stages();
  manifest.numeric_class = options_.numeric_class;
  manifest.identity = job().identity;
  manifest.parts = std::move(parts);
  request_commit({std::move(manifest), options_.completed, num_completed()});
}

/// If the disk writer ends before it answers, the one that replaces it gets the request again.
void scheduler_state::request_commit(const commit_snapshot& order) {
  auto step = order.manifest.step;
  committing_[step] = order;
  // Infinite, because the disk writer answers every request, also when the disk stalls.
  self_->request(known_.disk_writer, caf::infinite, order)
      .then(
          [this, step](const snapshot_committed&) {
            options_.log->debug("snapshot on disk step={}", step);
            step_on_disk_ = std::max(step_on_disk_.value_or(0), step);
            on_commit_over(step);
          },
          [this, step](const caf::error& problem) {
            if (has_ended(problem)) return;
            options_.log->warn("snapshot not committed, training continues step={} reason=\"{}\"", step,
                               describe(problem));
            on_snapshot_failed(step);
            on_commit_over(step);
          });
}

/// Tells all nodes to delete the parts, which take space that the next snapshot needs.
void scheduler_state::on_snapshot_failed(std::uint64_t step) {
  for (const auto& supervisor : options_.supervisors)
    self_->send(supervisor, snapshot_failed{options_.generation, step});
}

void scheduler_state::on_commit_over(std::uint64_t step) {
  committing_.erase(step);
  disk_.ended(step);
  if (non_finite_) return end_non_finite();
  extend_grant();
  finish_training_if_safe();
}

}  // namespace troupe
