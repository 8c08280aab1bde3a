// supervisor_state: handles the failure of its children and respawns them.
#include <caf/exit_reason.hpp>

#include "troupe/actor/actor_error.hpp"
#include "troupe/supervisor/supervisor_actor.hpp"

namespace troupe {

std::string supervisor_state::to_string(const child& one) {
  switch (one.role) {
    case child::kind::device:
      return "device " + std::to_string(one.number);
    case child::kind::stage:
      return "stage " + std::to_string(one.number);
    case child::kind::loader:
      return "the loader";
    case child::kind::replica_keeper:
      return "the replica keeper";
    case child::kind::disk_writer:
      return "the disk writer";
    case child::kind::scheduler:
      return "the scheduler";
    case child::kind::link:
      return "the link to rank " + std::to_string(one.number);
    case child::kind::gatherer:
      return "the gatherer";
  }
  return "an actor";
}

void supervisor_state::adopt(const caf::actor& actor, child one) {
  children_[actor.address()] = one;
  self_->monitor(actor);
}

/// Applies the restart policy: failed actors are respawned with the next view.
void supervisor_state::on_down(const caf::down_msg& down) {
  auto found = children_.find(down.source);
  if (found == children_.end()) return;
  auto failed = found->second;
  children_.erase(found);
  if (!down.reason || down.reason == caf::exit_reason::user_shutdown) return;
  auto cause =
      to_string(failed) + " on rank " + std::to_string(options_.rank) + " failed: " + describe(down.reason);
  options_.log->error("actor failed actor=\"{}\" reason=\"{}\"", to_string(failed), describe(down.reason));
  if (is_bad_input(down.reason)) return fail(cause);
  if (restart_generation(cause) && failed.role != child::kind::scheduler) to_respawn_.push_back(failed);
}

/// Requests a new generation and returns true; false, and the job fails, if the restart policy escalates.
bool supervisor_state::restart_generation(const std::string& cause) {
  auto now = self_->clock().now();
  auto decision = decide_restart(options_.restarts, 0, 1, restart_times_, now);
  if (decision.escalate)
    return fail(cause + " (and again after " + std::to_string(restart_times_.size()) + " restarts)"), false;
  std::erase_if(restart_times_, [&](auto then) { return now - then > options_.restarts.period; });
  restart_times_.push_back(now);
  self_->delayed_send(caf::actor_cast<caf::actor>(self_->address()), decision.delay,
                      generation_requested{generation_, cause});
  return true;
}

void supervisor_state::fail(const std::string& cause) { options_.members->fail_job(cause); }

/// For an error reply of a child. If the child has ended, it is respawned with the next generation; an error
/// that a living child returns is permanent and fails the job.
void supervisor_state::fail_unless_restarted(std::uint64_t generation, const std::string& what,
                                             const caf::error& problem) {
  if (generation == generation_ && !has_ended(problem)) fail(what + describe(problem));
}

void supervisor_state::respawn_failed() {
  for (const auto& failed : to_respawn_) {
    if (failed.role == child::kind::device) spawn_device(failed.number);
    if (failed.role == child::kind::stage) spawn_stage(failed.number);
    if (failed.role == child::kind::loader) spawn_loader();
    if (failed.role == child::kind::replica_keeper) spawn_replica_keeper();
    if (failed.role == child::kind::disk_writer) spawn_disk_writer();
    if (failed.role == child::kind::gatherer) gatherer_ = {};  // spawned when needed
  }
  if (!to_respawn_.empty() && job_) publish_children();
  to_respawn_.clear();
}

}  // namespace troupe
