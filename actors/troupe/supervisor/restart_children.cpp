// supervisor_state: follows the supervision tree when one of its children fails.
#include <caf/exit_reason.hpp>

#include "troupe/actor/actor_error.hpp"
#include "troupe/supervisor/supervisor_actor.hpp"

namespace troupe {

void supervisor_state::on_down(const caf::down_msg& down) {
  auto failed = children_.remove(down.source);
  if (!failed || !down.reason || down.reason == caf::exit_reason::user_shutdown) return;
  auto name = to_string(*failed), reason = describe(down.reason);
  auto cause = name + " on rank " + std::to_string(options_.rank) + " failed: " + reason;
  if (failed->role == child_role::replica_keeper) note_replicas_lost();
  if (is_bad_input(down.reason)) {
    options_.log->error("actor failed actor=\"{}\" reason=\"{}\"", name, reason);
    return fail(cause);
  }
  auto order = tree_.on_failure(*failed, self_->clock().now());
  log_restart(order, name, reason);
  if (order.action == restart_action::restart) return restart_later(order);
  if (order.action == restart_action::new_generation)
    to_respawn_.insert(order.children.begin(), order.children.end());
  carry_out(order, cause);
}

/// warn, since the job recovers; error: the job ends.
void supervisor_state::log_restart(const restart_order& order, const std::string& actor,
                                   const std::string& reason) const {
  if (order.action == restart_action::fail_job)
    return options_.log->error("actor failed actor=\"{}\" reason=\"{}\"", actor, reason);
  std::string again;
  for (const auto& one : order.children) again += (again.empty() ? "" : ", ") + to_string(one);
  bool alone = order.action == restart_action::restart;
  auto delay_ms = std::chrono::duration_cast<std::chrono::milliseconds>(order.delay).count();
  options_.log->warn(
      "actor failed actor=\"{}\" reason=\"{}\" restarts=\"{}\" new_generation={} earlier_restarts={} "
      "delay_ms={}",
      actor, reason, again, alone ? "no" : "yes", order.num_earlier, delay_ms);
}

/// Requests a new generation, or fails the job.
void supervisor_state::carry_out(const restart_order& order, const std::string& cause) {
  if (order.action == restart_action::fail_job)
    return fail(cause + " (and again after " + std::to_string(order.num_earlier) + " restarts)");
  self_->delayed_send(caf::actor_cast<caf::actor>(self_->address()), order.delay,
                      generation_requested{generation_, cause});
}

void supervisor_state::restart_generation(const std::string& cause) {
  carry_out(tree_.on_generation_wanted(self_->clock().now()), cause);
}

void supervisor_state::fail(const std::string& cause) { options_.members->fail_job(cause); }

/// For an error reply of a child. If the child has ended, it is respawned; an error that a living child
/// returns is permanent and fails the job.
void supervisor_state::fail_unless_restarted(std::uint64_t generation, const std::string& what,
                                             const caf::error& problem) {
  if (generation == generation_ && !has_ended(problem)) fail(what + describe(problem));
}

/// A device that is restarted with its stage has stopped by now, so no thread uses the stage's program.
void supervisor_state::respawn_failed() {
  for (const auto& one : to_respawn_) {
    if (one.role == child_role::gatherer)
      gatherer_ = {};  // spawned when needed
    else
      children_.respawn(one);
  }
  if (!to_respawn_.empty() && job_) publish_children();
  to_respawn_.clear();
}

/// For a new job, whose children are spawned anew.
void supervisor_state::forget_restarts() {
  std::erase_if(to_respawn_, [](const child_id& one) { return one.role != child_role::gatherer; });
  due_restarts_.clear();
}

}  // namespace troupe
