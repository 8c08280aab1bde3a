// supervisor_state: connects its node with the others in a new generation, and spawns the scheduler.
#include <caf/actor_system.hpp>
#include <caf/exit_reason.hpp>
#include <utility>

#include "troupe/actor/actor_of.hpp"
#include "troupe/link/link_actor.hpp"
#include "troupe/scheduler/scheduler_actor.hpp"
#include "troupe/supervisor/supervisor_actor.hpp"

namespace troupe {

void supervisor_state::publish_children() {
  stage_directory::receivers all{
      caf::actor_cast<caf::actor>(self_->address()), children_.replica_keeper(), local_scheduler_, {}};
  all.gatherer = gatherer();
  all.job = job_->number;
  for (auto stage : children_.hosted())
    all.devices[stage] = children_.devices().at(job_->placed.device_of({.stage = stage}).number);
  options_.directory->set(std::move(all));
  for (const auto& [number, device] : children_.devices())
    options_.gate->bind({actor_role::device, static_cast<std::uint32_t>(number)}, device);
}

/// Spawns the links of the new generation: from the scheduler's node to all others, and from these to it.
void supervisor_state::connect_nodes() {
  for (const auto& [rank, link] : links_) self_->send_exit(link, caf::exit_reason::user_shutdown);
  links_.clear();
  auto link_to = [this](int rank) {
    links_[rank] = self_->spawn<actor_of<link_state>>(link_options{rank, generation_, options_.out});
    children_.adopt(links_[rank], {child_role::link, rank});
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
  made.present = present_;
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
  children_.adopt(local_scheduler_, {child_role::scheduler, 0});
  options_.gate->bind({actor_role::scheduler, 0}, local_scheduler_);
  options_.directory->set_scheduler(local_scheduler_);
  if (job_) give_job_to_scheduler();
  if (stop_signal_) self_->send(local_scheduler_, stop_job{stop_signal_});
  if (cancelled_call_) self_->send(local_scheduler_, cancel_training{*cancelled_call_});
}

void supervisor_state::give_job_to_scheduler() {
  self_->send(local_scheduler_, job_known{job_, children_.disk_writer()});
}

void supervisor_state::give_devices_to_scheduler() {
  devices_known known{generation_, {}};
  for (const auto& device : job_->placed.devices()) {
    auto host = restoring_->hosts.member_of(device.id);
    known.devices.push_back(
        host == self_id() ? children_.devices().at(device.id.number)
                          : spawn_proxy(self_->system(), links_.at(host.rank),
                                        {actor_role::device, static_cast<std::uint32_t>(device.id.number)}));
  }
  self_->send(local_scheduler_, known);
}

}  // namespace troupe
