// supervisor_state: spawns its children, with their options.
#include <caf/actor_system.hpp>
#include <caf/exit_reason.hpp>
#include <utility>

#include "troupe/actor/actor_of.hpp"
#include "troupe/actor/receiving_actor.hpp"
#include "troupe/device/device_actor.hpp"
#include "troupe/disk_writer/disk_actor.hpp"
#include "troupe/disk_writer/disk_writer_actor.hpp"
#include "troupe/link/link_actor.hpp"
#include "troupe/loader/loader_actor.hpp"
#include "troupe/recovery/replica.hpp"
#include "troupe/replica_keeper/replica_keeper_actor.hpp"
#include "troupe/scheduler/scheduler_actor.hpp"
#include "troupe/stage/stage_actor.hpp"
#include "troupe/supervisor/supervisor_actor.hpp"

namespace troupe {
namespace {

template <class State, class... Args>
caf::actor spawn_on(child_threads threads, caf::event_based_actor* self, Args&&... args) {
  if (threads == child_threads::shared) return self->spawn<actor_of<State>>(std::forward<Args>(args)...);
  return self->spawn<actor_of<State>, caf::detached>(std::forward<Args>(args)...);
}

}  // namespace

void supervisor_state::spawn_children() {
  spawn_replica_keeper();
  spawn_disk_writer();
  spawn_loader();
  for (int stage = 0; stage < job_->training.num_stages; ++stage)
    if (job_->rank_of_stage(stage) == options_.rank) spawn_stage(stage);
  for (int device = 0; device < job_->training.num_devices(); ++device)
    if (job_->rank_of_device(device) == options_.rank) spawn_device(device);
  publish_children();
}

/// Stops the children of the previous job, all of whose calls are over. Their failures are ignored.
void supervisor_state::stop_children() {
  auto stop = [this](const caf::actor& one) {
    children_.erase(one.address());
    self_->send_exit(one, caf::exit_reason::user_shutdown);
  };
  for (const auto& [number, device] : std::exchange(devices_, {})) stop(device);
  for (const auto& [number, stage] : std::exchange(stages_, {})) stop(stage);
  for (const auto& one : {loader_, replica_keeper_, disk_writer_}) stop(one);
  std::erase_if(to_respawn_, [](const child& one) { return one.role != child::kind::gatherer; });
  restoring_.reset();
  ready_.clear();
  arrived_.clear();
  interrupted_step_ = 0;
  inventory_in_ = asked_in_ = 0;
  ++inquiry_;
  progress_ = {};
}

void supervisor_state::publish_children() {
  stage_directory::receivers all{
      caf::actor_cast<caf::actor>(self_->address()), replica_keeper_, local_scheduler_, {}};
  all.gatherer = gatherer();
  all.job = job_->number;
  for (const auto& [stage, actor] : stages_)
    all.devices[stage] = devices_.at(job_->training.device_of_stage[static_cast<std::size_t>(stage)]);
  options_.directory->set(std::move(all));
  for (const auto& [number, device] : devices_)
    options_.gate->bind({actor_role::device, static_cast<std::uint32_t>(number)}, device);
}

void supervisor_state::spawn_device(int device) {
  auto& ring = rings_[device];
  if (!ring) ring = &options_.trace->ring("device " + std::to_string(device));
  device_options made;
  made.device = device;
  made.rank = options_.rank;
  made.out = options_.out;
  made.faults = options_.faults;
  made.ring = ring;
  made.fenced = options_.fenced;
  progress_.watch(device, made.status);
  if (options_.threads == child_threads::shared) {
    made.spin = std::chrono::nanoseconds(0);  // on a shared thread nothing else could run while it polls
    devices_[device] = self_->spawn<actor_of<device_state>>(made);
  } else {
    devices_[device] = self_->spawn<receiving_actor<device_state>, caf::detached>(*options_.out, made);
  }
  adopt(devices_[device], {child::kind::device, device});
}

void supervisor_state::spawn_stage(int stage) {
  stages_[stage] = self_->spawn<actor_of<stage_state>>(stage_options{
      stage, options_.rank, job_->make_program, rank_of_peer_replica(options_.rank, options_.world_size),
      options_.out, options_.log, job_->number});
  adopt(stages_[stage], {child::kind::stage, stage});
}

void supervisor_state::spawn_loader() {
  auto status = std::make_shared<loader_status>();
  progress_.watch_loader(status);
  loader_ = spawn_on<loader_state>(options_.threads, self_, sources_, status, options_.faults);
  adopt(loader_, {child::kind::loader, 0});
}

void supervisor_state::spawn_replica_keeper() {
  replica_keeper_ = self_->spawn<actor_of<replica_keeper_state>>(replica_keeper_options{options_.rank});
  adopt(replica_keeper_, {child::kind::replica_keeper, 0});
}

void supervisor_state::spawn_disk_writer() {
  disk_writer_options made;
  made.host = options_.host;
  made.log = options_.log;
  if (!job_->snapshots.folder.empty()) {
    disk_options disk;
    disk.job_id = job_->job_id;
    disk.numeric_class = options_.numeric_class;
    disk.num_stages = static_cast<std::uint32_t>(job_->training.num_stages);
    disk.resume = job_->resume;
    disk.finite_only = job_->on_non_finite != non_finite_policy::go_on;
    disk.log = options_.log;
    disk.store.folder = job_->snapshots.folder;
    disk.store.keep = job_->snapshots.keep;
    disk.store.access = job_->snapshots.access;
    disk.store.on_progress = [progress = made.progress] { ++*progress; };
    disk.store.at_point = [faults = options_.faults](std::string_view point) {
      if (point == "part_half_written") faults->at(fault_point::part_half_written);
      if (point == "before_manifest") faults->at(fault_point::before_manifest);
    };
    made.disk = spawn_on<disk_state>(options_.threads, self_, disk);
  }
  disk_writer_ = self_->spawn<actor_of<disk_writer_state>>(made);
  adopt(disk_writer_, {child::kind::disk_writer, 0});
}

/// Spawns the links of the new generation: from the scheduler's node to all others, and from these to it.
void supervisor_state::connect_nodes() {
  for (const auto& [rank, link] : links_) self_->send_exit(link, caf::exit_reason::user_shutdown);
  links_.clear();
  auto link_to = [this](int rank) {
    links_[rank] = self_->spawn<actor_of<link_state>>(link_options{rank, generation_, options_.out});
    adopt(links_[rank], {child::kind::link, rank});
  };
  options_.gate->bind({actor_role::supervisor, 0}, caf::actor_cast<caf::actor>(self_->address()));
  gatherer();  // others may send get_cached before this process has a job
  if (options_.rank != scheduler_rank) {
    link_to(scheduler_rank);
    scheduler_ = spawn_proxy(self_->system(), links_[scheduler_rank], {actor_role::scheduler, 0});
    return;
  }
  for (int rank = 0; rank < options_.world_size; ++rank)
    if (rank != scheduler_rank) link_to(rank);
  spawn_scheduler();
}

void supervisor_state::spawn_scheduler() {
  scheduler_options made;
  made.generation = generation_;
  made.rank = options_.rank;
  made.world_size = options_.world_size;
  made.numeric_class = options_.numeric_class;
  made.members = options_.members;
  made.client = options_.client;
  made.log = options_.log;
  made.completed = calls_.completed();
  made.progress_timeout = options_.progress_timeout;
  made.supervisors.resize(static_cast<std::size_t>(options_.world_size),
                          caf::actor_cast<caf::actor>(self_->address()));
  for (const auto& [rank, link] : links_)
    made.supervisors[static_cast<std::size_t>(rank)] =
        spawn_proxy(self_->system(), link, {actor_role::supervisor, 0});
  local_scheduler_ = scheduler_ = self_->spawn<actor_of<scheduler_state>>(made);
  adopt(local_scheduler_, {child::kind::scheduler, 0});
  options_.gate->bind({actor_role::scheduler, 0}, local_scheduler_);
  options_.directory->set_scheduler(local_scheduler_);
  if (job_) give_job_to_scheduler();
  if (stop_signal_) self_->send(local_scheduler_, stop_job{stop_signal_});
  if (cancelled_call_) self_->send(local_scheduler_, cancel_training{*cancelled_call_});
}

void supervisor_state::give_job_to_scheduler() {
  job_known known{job_, {}, disk_writer_};
  for (int device = 0; device < job_->training.num_devices(); ++device) {
    auto rank = job_->rank_of_device(device);
    known.devices.push_back(rank == options_.rank
                                ? devices_.at(device)
                                : spawn_proxy(self_->system(), links_.at(rank),
                                              {actor_role::device, static_cast<std::uint32_t>(device)}));
  }
  self_->send(local_scheduler_, known);
}

}  // namespace troupe
