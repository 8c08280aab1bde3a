// supervisor_state: restores its stages' states and starts its devices.
#include <caf/sec.hpp>
#include <utility>

#include "troupe/disk_writer/messages.hpp"
#include "troupe/replica_keeper/messages.hpp"
#include "troupe/scheduler/messages.hpp"
#include "troupe/supervisor/supervisor_actor.hpp"

namespace troupe {

void supervisor_state::on_restore(const restore_order& order) {
  if (order.generation != generation_ || phase_ != phase::active) return;
  if (generation_ > 1) options_.faults->at(fault_point::recovery);
  restoring_ = order;
  reading_.clear();
  ready_.clear();
  restored_metrics_ = {};
  auto since_disk = std::chrono::duration<double>(order.since_disk_s);
  snapshot_at_ = self_->clock().now() - std::chrono::duration_cast<std::chrono::nanoseconds>(since_disk);
  self_->send(children_.replica_keeper(), keeper_generation{generation_, order.plan.step, scheduler_});
  self_->send(children_.disk_writer(), writer_generation{generation_, scheduler_, order.since_disk_s});
  if (order.plan.from_scratch) {
    for (const auto& [number, actor] : children_.stages()) hand_to_stage(number, order_for(0, true));
    return;
  }
  for (const auto& source : order.plan.sources) {
    if (hosts(static_cast<int>(source.stage)))
      restore_one(source);
    else if (source.rank == options_.rank && source.location == part_location::peer_memory)
      send_copy(source);
  }
}

void supervisor_state::restore_one(const restore_source& source) {
  auto stage = static_cast<int>(source.stage);
  auto order = order_for(restoring_->plan.step);
  if (source.location == part_location::own_memory) return hand_to_stage(stage, order);
  if (source.location == part_location::peer_memory) {
    order.packed = arrived_.find(generation_, stage);
    if (order.packed.defined()) hand_to_stage(stage, order);  // else on_state continues
    return;
  }
  read_from_disk_for(source.stage);
}

/// Infinite, because the disk writer answers every request, also when the disk stalls. If it ends before,
/// introduce_disk_writer repeats the request.
void supervisor_state::read_from_disk_for(std::uint32_t stage) {
  reading_.insert(stage);
  auto order = order_for(restoring_->plan.step);
  self_->request(children_.disk_writer(), caf::infinite, read_from_disk{order.step, stage})
      .then(
          [this, stage, order](const stage_copy& copy) mutable {
            if (order.generation != generation_) return;
            reading_.erase(stage);
            order = order_for(order.step);
            order.packed = copy.packed;
            hand_to_stage(static_cast<int>(stage), order);
          },
          [this, generation = generation_](const caf::error& problem) {
            fail_unless_restarted(generation, "a snapshot cannot be read: ", problem);
          });
}

void supervisor_state::send_copy(const restore_source& source) {
  auto step = restoring_->plan.step;
  auto generation = generation_;
  auto host = job_->rank_of_stage(static_cast<int>(source.stage));
  self_->request(children_.replica_keeper(), options_.restore_timeout, get_replica{step, source.stage})
      .then(
          [this, generation, step, host, stage = source.stage](const stage_copy& copy) {
            options_.out->send_tensor(
                host, {generation, step, job_->number, stage, 0, tensor_role::snapshot_part}, copy.packed);
          },
          [this, generation](const caf::error& problem) { on_replica_missing(generation, problem); });
}

void supervisor_state::on_state(const state_arrived& arrived) {
  if (arrived.generation < generation_) return;
  auto stage = static_cast<int>(arrived.stage);
  arrived_.add(arrived.generation, stage, arrived.packed);
  if (!restoring_ || arrived.generation != generation_) return;
  auto order = order_for(restoring_->plan.step);
  order.packed = arrived.packed;
  hand_to_stage(stage, order);
}

restore_stage supervisor_state::order_for(std::uint64_t step, bool from_scratch) const {
  return {
      generation_, step, from_scratch, {}, scheduler_, children_.replica_keeper(), children_.disk_writer()};
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
  if (ready_.size() == children_.stages().size()) begin_devices();
}

void supervisor_state::begin_devices() {
  auto made = make_device_job();
  stage_graph graph(job_->training.num_stages, job_->training.edges);
  for (const auto& [number, device] : children_.devices()) {
    begin_generation order{generation_, made, {}, scheduler_, {}, 0, options_.world_size};
    for (const auto& [stage, attached] : ready_) {
      if (job_->training.device_of_stage[static_cast<std::size_t>(stage)] != number) continue;
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
  made->rank_of_stage = job_->ranks_of_stages();
  made->num_threads = job_->num_threads;
  made->on_non_finite = job_->on_non_finite;
  return made;
}

}  // namespace troupe
