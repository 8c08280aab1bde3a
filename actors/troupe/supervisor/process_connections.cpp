#include "troupe/supervisor/process_connections.hpp"

#include <caf/exit_reason.hpp>
#include <caf/send.hpp>
#include <utility>

#include "troupe/messages/link.hpp"
#include "troupe/messages/supervisor.hpp"

namespace troupe::actors::supervisor {
namespace {

/// The agent's views have every rank, and all take part.
mesh::view active_view(const cluster::membership_view& formed) {
  mesh::view present{formed.generation, {}};
  for (const auto& member : formed.members)
    present.members.push_back({member.rank, mesh::member_role::active});
  return present;
}

}  // namespace

void process_connections::begin(const cluster::membership_view& formed) {
  generation_ = formed.generation;
  present_ = active_view(formed);
  end({}, "generation " + std::to_string(generation_) + " has begun");
  auto failed = [self = self_->address(), generation = generation_](int rank, const std::string& cause) {
    caf::anon_send(caf::actor_cast<caf::actor>(self), messages::link_failed{generation, rank, cause});
  };
  link::process_links_options made;
  made.rank = options_.rank;
  made.out = options_.out;
  made.on_failure = failed;
  links_ = std::make_shared<link::process_links>(self_->system(), formed, made);
  bind(actor::actor_role::supervisor, options_.rank, caf::actor_cast<caf::actor>(self_->address()));
}

void process_connections::use_scheduler(const caf::actor& here) {
  local_scheduler_ = scheduler_ = here;
  bind(actor::actor_role::scheduler, 0, here);
}

void process_connections::use_scheduler_of(int rank) {
  scheduler_ = remote(rank, actor::actor_role::scheduler, 0);
}

void process_connections::end(const std::vector<cluster::member_loss>& losses, const std::string& otherwise) {
  if (links_) links_->end(losses, otherwise);
}

void process_connections::end_scheduler() {
  if (local_scheduler_) self_->send_exit(local_scheduler_, caf::exit_reason::user_shutdown);
  local_scheduler_ = {};
}

void process_connections::bind(actor::actor_role role, int number, const caf::actor& actor) {
  options_.gate->bind({role, static_cast<std::uint32_t>(number), options_.incarnation}, actor);
}

void process_connections::publish(job_children& children) {
  stage_directory::receivers all{caf::actor_cast<caf::actor>(self_->address()), children.peer_copy_store(),
                                 children.receivers_by_cell()};
  all.gatherer = children.gatherer();
  all.job = children.job().number;
  options_.directory->set(std::move(all));
  for (const auto& [number, device] : children.devices()) bind(actor::actor_role::device, number, device);
  bind(actor::actor_role::gatherer, options_.rank, children.gatherer());
}

messages::inspected_generation process_connections::inspected() const {
  messages::inspected_generation made{generation_, {}, scheduler_};
  for (int rank = 0; rank < options_.world_size; ++rank)
    made.supervisors.push_back(rank == options_.rank ? caf::actor_cast<caf::actor>(self_->address())
                                                     : remote(rank, actor::actor_role::supervisor, rank));
  return made;
}

caf::actor process_connections::remote(int rank, actor::actor_role role, int number) const {
  return links_->proxy(rank, role, static_cast<std::uint32_t>(number));
}

}  // namespace troupe::actors::supervisor
