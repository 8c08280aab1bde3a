#include "troupe/supervisor/state_restore.hpp"

#include <utility>

#include "troupe/actor/actor_error.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/execution/replicas/replica_groups.hpp"
#include "troupe/job/metrics_tensor.hpp"
#include "troupe/job/part_tag.hpp"
#include "troupe/messages/peer_copy_store.hpp"
#include "troupe/messages/scheduler.hpp"
#include "troupe/messages/snapshot_writer.hpp"
#include "troupe/recovery/replica.hpp"
#include "troupe/trace/recording.hpp"

namespace troupe::actors::supervisor {

void arrived_states::add(std::uint64_t generation, const layout::part_id& part, const tensor& packed) {
  if (generation < generation_) return;
  if (generation > generation_) packed_.clear();
  generation_ = generation;
  packed_[part] = packed;
}

tensor arrived_states::find(std::uint64_t generation, const layout::part_id& part) const {
  auto found = packed_.find(part);
  if (generation != generation_ || found == packed_.end()) return {};
  return found->second;
}

state_restore::state_restore(caf::event_based_actor* self, const supervisor_options& options,
                             generation_runner& generations, process_connections& connections,
                             job_children& children)
    : self_(self),
      options_(options),
      generation_(generations.current()),
      generations_(generations),
      connections_(connections),
      children_(children) {}

void state_restore::begin(const messages::restore_command& command) {
  if (!generation_.runs(command.generation)) return;
  if (generation_.number > 1) options_.faults->at(fault::fault_point::recovery);
  command_ = command;
  *options_.hosted = {command.generation, command.hosts};
  reading_.clear();
  ready_.clear();
  restored_metrics_ = {};
  auto since_disk = std::chrono::duration<double>(command.since_disk_s);
  snapshot_at_ = self_->clock().now() - std::chrono::duration_cast<std::chrono::nanoseconds>(since_disk);
  introduce_store();
  introduce_writer();
  host_devices();
  if (command.plan.from_scratch)
    for (const auto& stage : children_.hosted()) hand_to_stage(stage, command_for(stage, 0, true));
  for (const auto& source : command.plan.sources) {
    if (children_.hosts(cell_of(source.part)))
      restore_one(source);
    else if (source.rank == options_.rank && source.location != recovery::part_location::disk)
      send_copy(source);
  }
  if (children_.hosted().empty()) begin_devices();
}

layout::cell state_restore::cell_of(const layout::part_id& part) const {
  return children_.job().placed.cell_of(part);
}

void state_restore::cancel() {
  command_.reset();
  reading_.clear();
  ready_.clear();
}

void state_restore::forget_job() {
  cancel();
  *options_.hosted = {};
  arrived_.clear();
}

std::optional<std::uint64_t> state_restore::step() const {
  if (!command_ || !generation_.is_active()) return {};
  return command_->plan.step;
}

void state_restore::introduce_store() {
  self_->send(children_.peer_copy_store(),
              messages::store_generation{generation_.number, command_->plan.step, connections_.scheduler()});
}

void state_restore::introduce_writer() {
  self_->send(
      children_.snapshot_writer(),
      messages::writer_generation{generation_.number, connections_.scheduler(), since_disk().count()});
}

void state_restore::read_again() {
  for (const auto& part : std::exchange(reading_, {})) read_from_disk_for(part);
}

/// Spawns the children that the command gives to this process. Stages that it takes away keep their copies
/// until their new host's are committed.
void state_restore::host_devices() {
  children_.host(command_->hosts.devices_of(self_rank()));
  for (const auto& [number, stage] : children_.stages())
    if (!children_.hosts(number)) self_->send(stage, messages::set_aside{command_->plan.step});
  if (command_->plan.from_scratch) children_.stop_set_aside();
  connections_.publish(children_);
  if (connections_.local_scheduler()) tell_devices();
}

/// Tells the scheduler, which is on this process, the handles of all devices.
void state_restore::tell_devices() {
  messages::devices_known known{generation_.number, {}};
  for (const auto& device : children_.job().placed.devices()) {
    auto host = command_->hosts.member_of(device.id);
    known.devices.push_back(host == self_rank()
                                ? children_.devices().at(device.id.number)
                                : connections_.remote(host, actor::actor_role::device, device.id.number));
  }
  self_->send(connections_.local_scheduler(), known);
}

void state_restore::on_committed(const messages::copies_committed& committed) {
  if (committed.generation != generation_.number || !command_) return;
  trace::emit_now(
      {.generation = committed.generation, .step = committed.step, .kind = trace::trace_kind::commit});
  self_->send(children_.peer_copy_store(), messages::drop_before{committed.step});
  if (committed.step > command_->plan.step) children_.stop_set_aside();
}

void state_restore::restore_one(const recovery::restore_source& source) {
  auto stage = cell_of(source.part);
  auto command = command_for(stage, command_->plan.step);
  if (source.location == recovery::part_location::disk) return read_from_disk_for(source.part);
  bool is_own = source.location == recovery::part_location::own_memory && source.held == source.part;
  if (source.rank == options_.rank && is_own) return hand_to_stage(stage, command);
  if (source.rank == options_.rank) return restore_from_this_process(source);
  command.packed = arrived_.find(generation_.number, source.part);
  if (command.packed.defined()) hand_to_stage(stage, command);  // else on_state continues
}

/// This process takes over a part whose copy it has kept, or has an equal part of another replica.
void state_restore::restore_from_this_process(const recovery::restore_source& source) {
  request_copy(source, [this, stage = cell_of(source.part),
                        command = command_for(cell_of(source.part), command_->plan.step)](
                           const messages::stage_copy& copy) mutable {
    command.packed = copy.packed;
    hand_to_stage(stage, command);
  });
}

/// From the stage or the peer copy store of this process that has it.
template <class Take>
void state_restore::request_copy(const recovery::restore_source& source, Take take) {
  auto step = command_->plan.step;
  auto failed = [this, generation = generation_.number](const caf::error& problem) {
    on_replica_missing(generation, problem);
  };
  if (source.location == recovery::part_location::own_memory)
    self_
        ->request(children_.stages().at(cell_of(source.held)), options_.restore_timeout,
                  messages::get_copy{step})
        .then(std::move(take), failed);
  else
    self_
        ->request(children_.peer_copy_store(), options_.restore_timeout,
                  messages::get_replica{step, source.held})
        .then(std::move(take), failed);
}

/// The snapshot may be of a job with other stages, so the stage says which tensors it needs.
void state_restore::read_from_disk_for(const layout::part_id& part) {
  reading_.insert(part);
  auto generation = generation_.number;
  self_
      ->request(children_.stages().at(cell_of(part)), options_.restore_timeout,
                messages::list_contents{children_.job().reset_optimizer})
      .then(
          [this, part, generation](const messages::contents_listed& listed) {
            if (generation == generation_.number) read_from_disk_for(part, listed);
          },
          [this, generation](const caf::error& problem) {
            generations_.fail_unless_restarted(generation, "a stage cannot be restored: ", problem);
          });
}

/// Infinite, because the snapshot writer answers every request, also when the disk stalls. If it ends before,
/// read_again repeats the request.
void state_restore::read_from_disk_for(const layout::part_id& part, const messages::contents_listed& listed) {
  const auto& job = children_.job();
  auto wanted = listed.contents;
  bool is_last = part.cell.stage == job.training.num_stages - 1;
  if (is_last && !job.shares_metrics()) wanted.push_back(job::metrics_contents());
  messages::read_from_disk request{command_->plan.step, part, std::move(wanted),
                                   is_last && job.shares_metrics() ? job.training.mesh.num_replicas : 0,
                                   listed.new_optimizer};
  auto generation = generation_.number;
  self_->request(children_.snapshot_writer(), caf::infinite, std::move(request))
      .then(
          [this, part, generation](const messages::stage_copy& copy) {
            if (generation != generation_.number || reading_.erase(part) == 0) return;
            auto command = command_for(cell_of(part), command_->plan.step);
            command.packed = copy.packed;
            hand_to_stage(cell_of(part), command);
          },
          [this, generation](const caf::error& problem) {
            generations_.fail_unless_restarted(generation, "a snapshot cannot be read: ", problem);
          });
}

/// To the part's host: what the peer copy store has kept, or what the stage held when this process hosted it.
void state_restore::send_copy(const recovery::restore_source& source) {
  auto step = command_->plan.step;
  auto generation = generation_.number;
  const auto& job = children_.job();
  auto host = host_of(job.placed, command_->hosts, source.part);
  request_copy(source, [this, generation, step, host, number = job.number,
                        part = source.part](const messages::stage_copy& copy) {
    options_.out->send_tensor(
        host, job::part_tag(transport::tensor_role::restored_state, generation, step, number, part),
        copy.packed);
  });
}

/// A replica that the restore needs is missing. If it was lost with the peer copy store after this process's
/// inventory was sent, a new generation restores what the processes really hold.
void state_restore::on_replica_missing(std::uint64_t generation, const caf::error& problem) {
  if (generation != generation_.number) return;
  auto cause = "a peer's state is gone: " + actor::describe(problem);
  if (!actor::has_ended(problem) && replicas_lost_in_ != generation) return generations_.fail_job(cause);
  if (std::exchange(replica_missing_in_, generation) != generation) generations_.request(cause);
}

void state_restore::on_state(const messages::state_arrived& arrived) {
  if (arrived.generation < generation_.number) return;
  arrived_.add(arrived.generation, arrived.part, arrived.packed);
  if (!command_ || arrived.generation != generation_.number || !children_.hosts(cell_of(arrived.part)))
    return;
  auto command = command_for(cell_of(arrived.part), command_->plan.step);
  command.packed = arrived.packed;
  hand_to_stage(cell_of(arrived.part), command);
}

messages::restore_stage state_restore::command_for(const layout::cell& stage, std::uint64_t step,
                                                   bool from_scratch) const {
  const auto& job = children_.job();
  return {.generation = generation_.number,
          .step = step,
          .from_scratch = from_scratch,
          .packed = {},
          .scheduler = connections_.scheduler(),
          .peer_copy_store = children_.peer_copy_store(),
          .snapshot_writer = children_.snapshot_writer(),
          .keeper = recovery::copy_keeper(job.part_of(stage), job.parts, job.placed, command_->hosts,
                                          connections_.present())};
}

void state_restore::hand_to_stage(const layout::cell& stage, messages::restore_stage command) {
  auto generation = generation_.number;
  if (command.generation != generation) return;
  self_->request(children_.stages().at(stage), options_.restore_timeout, command)
      .then(
          [this, generation](const messages::stage_ready& ready) {
            if (generation == generation_.number) on_stage_ready(ready);
          },
          [this, generation](const caf::error& problem) {
            generations_.fail_unless_restarted(generation, "a stage cannot be restored: ", problem);
          });
}

void state_restore::on_stage_ready(const messages::stage_ready& ready) {
  restored_metrics_.insert(ready.metrics.begin(), ready.metrics.end());
  ready_[ready.cell] = {ready.cell.stage, ready.program, children_.stages().at(ready.cell)};
  if (ready_.size() == children_.hosted().size()) begin_devices();
}

void state_restore::begin_devices() {
  auto made = make_device_job();
  const auto& job = children_.job();
  schedule::stage_graph graph(job.training.num_stages, job.training.edges);
  for (const auto& [number, device] : children_.devices()) {
    messages::begin_generation command{generation_.number,       made, {},
                                       connections_.scheduler(), {},   options_.world_size};
    for (const auto& [stage, attached] : ready_) {
      if (job.placed.device_of(stage).number != number) continue;
      command.stages.push_back(attached);
      if (graph.takes_samples(stage.stage) || graph.computes_loss(stage.stage))
        command.loader = children_.loader();
    }
    self_->send(device, command);
  }
  arrived_.clear();
  self_->send(connections_.scheduler(),
              messages::process_restored{generation_.number, options_.rank, restored_metrics_});
}

std::shared_ptr<const messages::device_job> state_restore::make_device_job() const {
  const auto& job = children_.job();
  auto made = std::make_shared<messages::device_job>();
  made->training = job.training;
  made->placed = job.placed;
  made->hosts = command_->hosts;
  made->places = job.places;
  made->num_threads = job.num_threads;
  made->on_non_finite = job.on_non_finite;
  made->shares_metrics = job.shares_metrics();
  if (job.make_group) made->groups = make_groups();
  return made;
}

/// Null if no stage that this process hosts has replicas in others.
std::shared_ptr<execution::replica_groups> state_restore::make_groups() const {
  const auto& job = children_.job();
  auto num_replicas = job.training.mesh.num_replicas;
  execution::replica_groups::replica_ranks ranks;
  for (const auto& cell : children_.hosted())
    if (is_on_several_members(job.placed, command_->hosts, cell, num_replicas))
      ranks[{cell.stage, cell.slice}] = hosts_of_replicas(job.placed, command_->hosts, cell, num_replicas);
  if (ranks.empty()) return nullptr;
  auto failed = [supervisor = caf::actor_cast<caf::actor>(self_->address()),
                 generation = generation_.number](const std::exception& cause) {
    auto kind = dynamic_cast<const bad_input*>(&cause) ? failure_kind::bad_input : failure_kind::error;
    caf::anon_send(supervisor, messages::replica_group_failed{generation, cause.what(), kind});
  };
  return std::make_shared<execution::replica_groups>(generation_.number, job.number, std::move(ranks),
                                                     job.make_group, failed);
}

}  // namespace troupe::actors::supervisor
