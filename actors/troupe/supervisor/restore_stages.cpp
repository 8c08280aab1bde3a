// supervisor_state: restores its stages' states and starts its devices.
#include <caf/sec.hpp>
#include <utility>

#include "troupe/disk_writer/messages.hpp"
#include "troupe/job/metrics_tensor.hpp"
#include "troupe/job/part_tag.hpp"
#include "troupe/recovery/replica.hpp"
#include "troupe/replica_keeper/messages.hpp"
#include "troupe/scheduler/messages.hpp"
#include "troupe/supervisor/supervisor_actor.hpp"

namespace troupe {

void supervisor_state::on_restore(const restore_order& order) {
  if (order.generation != generation_ || phase_ != phase::active) return;
  if (generation_ > 1) options_.faults->at(fault_point::recovery);
  restoring_ = order;
  *options_.hosted = {order.generation, order.hosts};
  reading_.clear();
  ready_.clear();
  restored_metrics_ = {};
  auto since_disk = std::chrono::duration<double>(order.since_disk_s);
  snapshot_at_ = self_->clock().now() - std::chrono::duration_cast<std::chrono::nanoseconds>(since_disk);
  self_->send(children_.replica_keeper(), keeper_generation{generation_, order.plan.step, scheduler_});
  self_->send(children_.disk_writer(), writer_generation{generation_, scheduler_, order.since_disk_s});
  host_devices();
  if (order.plan.from_scratch)
    for (auto stage : children_.hosted()) hand_to_stage(stage, order_for(0, true));
  for (const auto& source : order.plan.sources) {
    if (hosts(source.part))
      restore_one(source);
    else if (source.rank == options_.rank && source.location != part_location::disk)
      send_copy(source);
  }
  if (children_.hosted().empty()) begin_devices();
}

/// Spawns the children that the order gives to this node. Stages that it takes away keep their copies until
/// their new host's are committed.
void supervisor_state::host_devices() {
  children_.host(restoring_->hosts.devices_of(self_id()));
  for (const auto& [number, stage] : children_.stages())
    if (!hosts(number)) self_->send(stage, set_aside{restoring_->plan.step});
  if (restoring_->plan.from_scratch) children_.stop_set_aside();
  tree_.set_branches(children_.branches());
  publish_children();
  if (local_scheduler_) give_devices_to_scheduler();
}

/// Where devices run, they tell their stages, and these the replica keeper.
void supervisor_state::on_committed(const copies_committed& committed) {
  if (committed.generation != generation_ || !restoring_) return;
  self_->send(children_.replica_keeper(), drop_before{committed.step});
  if (committed.step > restoring_->plan.step) children_.stop_set_aside();
}

void supervisor_state::restore_one(const restore_source& source) {
  auto stage = source.part.of.stage;
  auto order = order_for(restoring_->plan.step);
  if (source.location == part_location::disk) return read_from_disk_for(source.part);
  if (source.rank == options_.rank && source.location == part_location::own_memory)
    return hand_to_stage(stage, order);
  if (source.rank == options_.rank) return restore_from_keeper(source);
  order.packed = arrived_.find(generation_, source.part);
  if (order.packed.defined()) hand_to_stage(stage, order);  // else on_state continues
}

/// This node takes over a part whose copy it has kept.
void supervisor_state::restore_from_keeper(const restore_source& source) {
  auto order = order_for(restoring_->plan.step);
  self_->request(children_.replica_keeper(), options_.restore_timeout, get_replica{order.step, source.held})
      .then(
          [this, stage = source.part.of.stage, order](const stage_copy& copy) mutable {
            order.packed = copy.packed;
            hand_to_stage(stage, order);
          },
          [this, generation = generation_](const caf::error& problem) {
            on_replica_missing(generation, problem);
          });
}

/// The snapshot may be of a job with other stages, so the stage says which tensors it needs.
void supervisor_state::read_from_disk_for(const part_id& part) {
  reading_.insert(part);
  self_->request(children_.stages().at(part.of.stage), options_.restore_timeout, list_contents{})
      .then(
          [this, part, generation = generation_](const contents_listed& listed) {
            if (generation == generation_) read_from_disk_for(part, listed.contents);
          },
          [this, generation = generation_](const caf::error& problem) {
            fail_unless_restarted(generation, "a stage cannot be restored: ", problem);
          });
}

/// Infinite, because the disk writer answers every request, also when the disk stalls. If it ends before,
/// introduce_disk_writer repeats the request.
void supervisor_state::read_from_disk_for(const part_id& part, std::vector<tensor_contents> wanted) {
  auto order = order_for(restoring_->plan.step);
  if (part.of.stage == job_->training.num_stages - 1) wanted.push_back(metrics_contents());
  self_->request(children_.disk_writer(), caf::infinite, read_from_disk{order.step, part, std::move(wanted)})
      .then(
          [this, part, order](const stage_copy& copy) mutable {
            if (order.generation != generation_ || reading_.erase(part) == 0) return;
            order = order_for(order.step);
            order.packed = copy.packed;
            hand_to_stage(part.of.stage, order);
          },
          [this, generation = generation_](const caf::error& problem) {
            fail_unless_restarted(generation, "a snapshot cannot be read: ", problem);
          });
}

/// To the part's host: what the replica keeper has kept, or what the stage held when this node hosted it.
void supervisor_state::send_copy(const restore_source& source) {
  auto step = restoring_->plan.step;
  auto generation = generation_;
  auto host = host_of(job_->placed, restoring_->hosts, source.part.of);
  auto send = [this, generation, step, host, part = source.part](const stage_copy& copy) {
    options_.out->send_tensor(
        host.rank, part_tag(tensor_role::restored_state, generation, step, job_->number, part), copy.packed);
  };
  auto failed = [this, generation](const caf::error& problem) { on_replica_missing(generation, problem); };
  if (source.location == part_location::own_memory)
    self_->request(children_.stages().at(source.held.of.stage), options_.restore_timeout, get_copy{step})
        .then(send, failed);
  else
    self_->request(children_.replica_keeper(), options_.restore_timeout, get_replica{step, source.held})
        .then(send, failed);
}

void supervisor_state::on_state(const state_arrived& arrived) {
  if (arrived.generation < generation_) return;
  arrived_.add(arrived.generation, arrived.part, arrived.packed);
  if (!restoring_ || arrived.generation != generation_ || !hosts(arrived.part)) return;
  auto order = order_for(restoring_->plan.step);
  order.packed = arrived.packed;
  hand_to_stage(arrived.part.of.stage, order);
}

restore_stage supervisor_state::order_for(std::uint64_t step, bool from_scratch) const {
  return {.generation = generation_,
          .step = step,
          .from_scratch = from_scratch,
          .packed = {},
          .scheduler = scheduler_,
          .replica_keeper = children_.replica_keeper(),
          .disk_writer = children_.disk_writer(),
          .keeper = keeper_of(present_, self_id())};
}

void supervisor_state::on_write_copies(const write_copies& order) {
  if (order.generation != generation_) return;
  for (const auto& [number, stage] : children_.stages()) self_->send(stage, write_copy{order.step});
}

void supervisor_state::on_replicate(const replicate_copies& order) {
  if (order.generation != generation_) return;
  for (const auto& [number, stage] : children_.stages()) self_->send(stage, replicate_again{});
}

void supervisor_state::on_snapshot_failed(const snapshot_failed& failed) {
  if (failed.generation == generation_ && children_.disk_writer())
    self_->send(children_.disk_writer(), discard_parts{failed.step});
}

void supervisor_state::hand_to_stage(int stage, restore_stage order) {
  if (order.generation != generation_) return;
  self_->request(children_.stages().at(stage), options_.restore_timeout, order)
      .then(
          [this, generation = generation_](const stage_ready& ready) {
            if (generation == generation_) on_stage_ready(ready);
          },
          [this, generation = generation_](const caf::error& problem) {
            fail_unless_restarted(generation, "a stage cannot be restored: ", problem);
          });
}

void supervisor_state::on_stage_ready(const stage_ready& ready) {
  restored_metrics_ += ready.metrics;
  ready_[ready.stage] = {ready.stage, ready.program, children_.stages().at(ready.stage)};
  if (ready_.size() == children_.hosted().size()) begin_devices();
}

void supervisor_state::begin_devices() {
  auto made = make_device_job();
  stage_graph graph(job_->training.num_stages, job_->training.edges);
  for (const auto& [number, device] : children_.devices()) {
    begin_generation order{generation_, made, {}, scheduler_, {}, 0, options_.world_size};
    for (const auto& [stage, attached] : ready_) {
      if (job_->placed.device_of({.stage = stage}).number != number) continue;
      order.stages.push_back(attached);
      if (graph.takes_samples(stage) || graph.computes_loss(stage)) order.loader = children_.loader();
    }
    self_->send(device, order);
  }
  arrived_.clear();
  self_->send(scheduler_, node_restored{generation_, options_.rank, restored_metrics_});
}

std::shared_ptr<const device_job> supervisor_state::make_device_job() const {
  auto made = std::make_shared<device_job>();
  made->training = job_->training;
  made->placed = job_->placed;
  made->hosts = restoring_->hosts;
  made->num_threads = job_->num_threads;
  made->on_non_finite = job_->on_non_finite;
  return made;
}

}  // namespace troupe
