// supervisor_state: connects its node with the others in a new generation, and spawns the scheduler.
#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <utility>

#include "troupe/actor/actor_of.hpp"
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
    options_.gate->bind(name_of(actor_role::device, number), device);
}

actor_name supervisor_state::name_of(actor_role role, int number) const {
  return {role, static_cast<std::uint32_t>(number), options_.incarnation};
}

/// Makes the links of the new generation, which connect when they are needed, and gives this node's actors
/// their names.
void supervisor_state::connect_nodes(const membership_view& view) {
  end_links({}, "generation " + std::to_string(generation_) + " has begun");
  auto failed = [self = self_->address(), generation = generation_](int rank, const std::string& cause) {
    caf::anon_send(caf::actor_cast<caf::actor>(self), link_failed{generation, rank, cause});
  };
  node_links_options made;
  made.rank = options_.rank;
  made.out = options_.out;
  made.on_failure = failed;
  links_ = std::make_shared<node_links>(self_->system(), view, made);
  options_.gate->bind(name_of(actor_role::supervisor, options_.rank),
                      caf::actor_cast<caf::actor>(self_->address()));
  gatherer();  // others may send get_cached before this process has a job
  if (options_.rank == scheduler_rank)
    spawn_scheduler();
  else
    scheduler_ = links_->proxy(scheduler_rank, actor_role::scheduler, 0);
}

/// Requests to remote actors fail, and those that monitor them get a down message.
void supervisor_state::end_links(const std::vector<member_loss>& losses, const std::string& otherwise) {
  if (links_) links_->end(losses, otherwise);
}

void supervisor_state::on_link_failed(const link_failed& failed) {
  if (failed.generation != generation_ || phase_ != phase::active) return;
  auto cause = "the link to rank " + std::to_string(failed.rank) + " on rank " +
               std::to_string(options_.rank) + " failed: " + failed.cause;
  options_.log->warn("{}", cause);
  restart_generation(cause);
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
  for (int rank = 0; rank < options_.world_size; ++rank)
    made.supervisors.push_back(rank == options_.rank ? caf::actor_cast<caf::actor>(self_->address())
                                                     : links_->proxy(rank, actor_role::supervisor,
                                                                     static_cast<std::uint32_t>(rank)));
  local_scheduler_ = scheduler_ = self_->spawn<actor_of<scheduler_state>>(made);
  children_.adopt(local_scheduler_, {child_role::scheduler, 0});
  options_.gate->bind(name_of(actor_role::scheduler, 0), local_scheduler_);
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
    known.devices.push_back(host == self_id() ? children_.devices().at(device.id.number)
                                              : links_->proxy(host.rank, actor_role::device,
                                                              static_cast<std::uint32_t>(device.id.number)));
  }
  self_->send(local_scheduler_, known);
}

}  // namespace troupe
