#include "troupe/supervisor/io_subtree.hpp"

#include <utility>

#include "troupe/messages/peer_copy_store.hpp"
#include "troupe/messages/scheduler.hpp"
#include "troupe/messages/snapshot_writer.hpp"

namespace troupe::actors::supervisor {

io_subtree::io_subtree(caf::event_based_actor* self, const supervisor_options& options,
                       const generation_runner& generations, process_connections& connections,
                       job_children& children, state_restore& restore)
    : self_(self),
      options_(options),
      generation_(generations.current()),
      connections_(connections),
      children_(children),
      restore_(restore) {}

void io_subtree::restart_later(const restart_command& command) {
  for (auto one = command.children.rbegin(); one != command.children.rend(); ++one) children_.stop(*one);
  due_[++num_due_] = command.children;
  self_->delayed_send(caf::actor_cast<caf::actor>(self_->address()), command.delay,
                      messages::restart_due{num_due_});
}

void io_subtree::on_due(const messages::restart_due& due) {
  auto found = due_.find(due.number);
  if (found == due_.end()) return;
  auto children = std::move(found->second);
  due_.erase(found);
  for (const auto& one : children) children_.respawn(one);
  for (const auto& one : children) {
    options_.log->info("actor restarted actor=\"{}\" generation={}", to_string(one), generation_.number);
    introduce(one);
  }
}

void io_subtree::introduce(const child_id& one) {
  if (one.role == child_role::loader) introduce_loader();
  if (one.role == child_role::peer_copy_store) introduce_store();
  if (one.role == child_role::snapshot_writer) introduce_writer();
  if (one.role == child_role::inspector && generation_.is_active())
    self_->send(children_.inspector(), connections_.inspected());
}

/// The inspector belongs to all jobs.
void io_subtree::forget_job() {
  std::erase_if(due_, [](const auto& one) { return one.second.front().role != child_role::inspector; });
}

void io_subtree::introduce_loader() {
  for (const auto& [number, device] : children_.devices())
    self_->send(device, messages::loader_replaced{children_.loader()});
}

void io_subtree::introduce_store() {
  if (restore_.step()) restore_.introduce_store();
  connections_.publish(children_);
  introduce_to_stages();
  if (generation_.is_active())
    self_->send(connections_.scheduler(), messages::replicas_wanted{generation_.number, options_.rank});
}

void io_subtree::introduce_writer() {
  if (restore_.step()) restore_.introduce_writer();
  introduce_to_stages();
  if (connections_.local_scheduler())
    self_->send(connections_.local_scheduler(),
                messages::snapshot_writer_replaced{children_.snapshot_writer()});
  if (!restore_.step()) return;  // nothing was written or read in this generation yet
  self_->send(connections_.scheduler(), messages::writes_lost{generation_.number, options_.rank});
  restore_.read_again();
}

void io_subtree::introduce_to_stages() {
  for (const auto& [number, stage] : children_.stages())
    self_->send(stage, messages::io_replaced{children_.peer_copy_store(), children_.snapshot_writer()});
}

}  // namespace troupe::actors::supervisor
