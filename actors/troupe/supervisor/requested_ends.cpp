#include "troupe/supervisor/requested_ends.hpp"

#include <unistd.h>

#include <csignal>
#include <utility>

#include "troupe/actor/actor_error.hpp"

namespace troupe::actors::supervisor {
namespace {

std::string text_of(const std::string& what, const std::string& id) {
  return what + " by command " + id + " of the inspector";
}

}  // namespace

void kill_this_process() { ::kill(::getpid(), SIGKILL); }

caf::result<messages::command_carried_out> requested_ends::end(const messages::end_actor& command) {
  auto child = children_.running(command.child);
  if (command.incarnation != options_.incarnation || !child)
    return actor::unavailable("no such actor runs: take its id from /api/v1/actors, and try again");
  if (command.is_failure)
    if (auto why = reason_against(*child); !why.empty()) return actor::unavailable(why);
  auto reason = text_of(command.is_failure ? "killed" : "restarted", command.id);
  options_.log->info("actor \"{}\" is {}", to_string(*child), reason);
  if (!command.is_failure) restarts_.insert(*child);
  children_.end_with(*child, make_error(actor::actor_error::failed, reason));
  return messages::command_carried_out{children_.ledger().starts_of(*child)};
}

/// A failure that uses up what is left of restarts would end the job, or the inspector.
std::string requested_ends::reason_against(const child_id& child) {
  tree_.set_branches(children_.branches());
  auto now = self_->clock().now();
  if (child.role == child_role::inspector)
    return inspector_restarts_.num_recent(now) < inspector_restarts_.options().intensity
               ? std::string()
               : "the inspector has failed so often lately that it would not be started again: try again "
                 "in half a minute";
  if (!tree_.would_fail_job(child, now)) return {};
  return "actors of this process have failed so often lately that one more failure would end the job: try "
         "again in half a minute, or give the command restart, which does not count";
}

caf::result<messages::command_carried_out> requested_ends::end(const messages::end_process& command) {
  if (command.incarnation != options_.incarnation)
    return actor::unavailable("the process was replaced meanwhile");
  if (!options_.is_replaced)
    return actor::unavailable("no launcher replaces this process, and the job would end");
  if (std::exchange(is_ending_, true)) return actor::unavailable("the process is ending already");
  auto cause = text_of(command.is_failure ? "killed" : "restarted", command.id);
  options_.log->warn("this process is {}", cause);
  options_.members->failing(cause);
  self_->delayed_send(caf::actor_cast<caf::actor>(self_->address()), before_end,
                      messages::end_process_now{command.is_failure, cause});
  return messages::command_carried_out{};
}

/// The program's thread ends it cleanly if it is in a call, or makes one.
void requested_ends::on_due(const messages::end_process_now& due) {
  if (due.is_failure) return options_.kill_process();
  options_.client->put(job::job_failure{"this process is " + due.cause});
  self_->delayed_send(caf::actor_cast<caf::actor>(self_->address()), time_to_end,
                      messages::end_process_now{1, due.cause});
}

caf::result<messages::command_carried_out> requested_ends::set(const messages::set_log_level& command) {
  auto level = spdlog::level::from_str(command.level);
  if (level == spdlog::level::off && command.level != "off")
    return actor::unavailable("expected a level of the log, got '" + command.level + "'");
  options_.log->set_level(level);
  return messages::command_carried_out{};
}

}  // namespace troupe::actors::supervisor
