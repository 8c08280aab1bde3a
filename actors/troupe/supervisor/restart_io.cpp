// supervisor_state: restarts loader, replica keeper and disk writer within a generation, so that no other
// actor is disturbed.
//
// What each of them loses, and how that is restored:
//   loader          batches that were requested: devices request them again (loader_replaced)
//   replica keeper  copies of the peer's stages: the scheduler no longer counts them (replicas_lost), and the
//                   peer sends what it still holds to the new keeper (replicas_wanted)
//   disk writer     parts to be written: the scheduler has them written again, or gives their snapshot up
//                   (writes_lost); requests without an answer: supervisor and scheduler repeat them
#include <utility>

#include "troupe/actor/actor_error.hpp"
#include "troupe/disk_writer/messages.hpp"
#include "troupe/replica_keeper/messages.hpp"
#include "troupe/scheduler/messages.hpp"
#include "troupe/supervisor/supervisor_actor.hpp"

namespace troupe {

/// Those that are restarted along with the one that failed are stopped at once.
void supervisor_state::restart_later(const restart_order& order) {
  for (auto one = order.children.rbegin(); one != order.children.rend(); ++one) children_.stop(*one);
  due_restarts_[++num_restarts_due_] = order.children;
  self_->delayed_send(caf::actor_cast<caf::actor>(self_->address()), order.delay,
                      restart_due{num_restarts_due_});
}

/// Restarts that belong to a previous job are no longer due.
void supervisor_state::on_restart_due(const restart_due& due) {
  auto found = due_restarts_.find(due.number);
  if (found == due_restarts_.end()) return;
  auto children = std::move(found->second);
  due_restarts_.erase(found);
  for (const auto& one : children) children_.respawn(one);
  for (const auto& one : children) {
    options_.log->info("actor restarted actor=\"{}\" generation={}", to_string(one), generation_);
    if (one.role == child_role::loader) introduce_loader();
    if (one.role == child_role::replica_keeper) introduce_replica_keeper();
    if (one.role == child_role::disk_writer) introduce_disk_writer();
  }
}

void supervisor_state::introduce_loader() {
  for (const auto& [number, device] : children_.devices())
    self_->send(device, loader_replaced{children_.loader()});
}

std::optional<std::uint64_t> supervisor_state::restored_step() const {
  if (!restoring_ || phase_ != phase::active) return {};
  return restoring_->plan.step;
}

/// At once, since the scheduler must not take a step for committed whose second copy is gone.
void supervisor_state::note_replicas_lost() {
  replicas_lost_in_ = generation_;
  std::erase_if(inventory_.parts,
                [](const held_part& part) { return part.location == part_location::peer_memory; });
  if (phase_ == phase::active) self_->send(scheduler_, replicas_lost{generation_, options_.rank});
}

void supervisor_state::introduce_replica_keeper() {
  if (auto step = restored_step())
    self_->send(children_.replica_keeper(), keeper_generation{generation_, *step, scheduler_});
  publish_children();
  introduce_to_stages();
  if (phase_ == phase::active) self_->send(scheduler_, replicas_wanted{generation_, options_.rank});
}

void supervisor_state::introduce_to_stages() {
  for (const auto& [number, stage] : children_.stages())
    self_->send(stage, io_replaced{children_.replica_keeper(), children_.disk_writer()});
}

void supervisor_state::introduce_disk_writer() {
  std::chrono::duration<double> since_disk = self_->clock().now() - snapshot_at_;
  if (restored_step())
    self_->send(children_.disk_writer(), writer_generation{generation_, scheduler_, since_disk.count()});
  introduce_to_stages();
  if (local_scheduler_) self_->send(local_scheduler_, disk_writer_replaced{children_.disk_writer()});
  if (!restored_step()) return;  // nothing was written or read in this generation yet
  self_->send(scheduler_, writes_lost{generation_, options_.rank});
  for (const auto& part : std::exchange(reading_, {})) read_from_disk_for(part);
}

/// A replica that the restore needs is missing. If it was lost with the replica keeper after this node's
/// inventory was sent, a new generation restores what the nodes really hold.
void supervisor_state::on_replica_missing(std::uint64_t generation, const caf::error& problem) {
  if (generation != generation_) return;
  auto cause = "a peer's state is gone: " + describe(problem);
  if (!has_ended(problem) && replicas_lost_in_ != generation_) return fail(cause);
  if (std::exchange(replica_missing_in_, generation_) != generation_) restart_generation(cause);
}

}  // namespace troupe
