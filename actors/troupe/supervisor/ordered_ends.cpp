#include "troupe/supervisor/ordered_ends.hpp"

#include <unistd.h>

#include <csignal>
#include <utility>

#include "troupe/actor/actor_error.hpp"

namespace troupe {
namespace {

std::string text_of(const std::string& what, const std::string& order) {
  return what + " by order " + order + " of the inspector";
}

}  // namespace

void kill_this_process() { ::kill(::getpid(), SIGKILL); }

caf::result<order_carried_out> ordered_ends::end(const end_actor& order) {
  auto child = children_.running({static_cast<child_role>(order.role), order.number, order.replica});
  if (order.incarnation != options_.incarnation || !child)
    return unavailable("no such actor runs: take its id from /api/v1/actors, and order again");
  if (order.is_failure)
    if (auto why = reason_against(*child); !why.empty()) return unavailable(why);
  auto reason = text_of(order.is_failure ? "killed" : "restarted", order.order);
  options_.log->info("actor \"{}\" is {}", to_string(*child), reason);
  if (!order.is_failure) restarts_.insert(*child);
  children_.end_with(*child, make_error(actor_error::failed, reason));
  return order_carried_out{children_.ledger().starts_of(*child)};
}

/// A failure that uses up what is left of restarts would end the job, or the inspector.
std::string ordered_ends::reason_against(const child_id& child) {
  tree_.set_branches(children_.branches());
  auto now = self_->clock().now();
  if (child.role == child_role::inspector)
    return inspector_restarts_.num_recent(now) < inspector_restarts_.options().intensity
               ? std::string()
               : "the inspector has failed so often lately that it would not be started again: order again "
                 "in "
                 "half a minute";
  if (!tree_.would_fail_job(child, now)) return {};
  return "actors of this process have failed so often lately that one more failure would end the job: order "
         "again in half a minute, or order a restart, which does not count";
}

caf::result<order_carried_out> ordered_ends::end(const end_process& order) {
  if (order.incarnation != options_.incarnation) return unavailable("the process was replaced meanwhile");
  if (!options_.is_replaced) return unavailable("no launcher replaces this process, and the job would end");
  if (std::exchange(is_ending_, true)) return unavailable("the process is ending already");
  auto cause = text_of(order.is_failure ? "killed" : "restarted", order.order);
  options_.log->warn("this process is {}", cause);
  options_.members->failing(cause);
  self_->delayed_send(caf::actor_cast<caf::actor>(self_->address()), before_end,
                      end_process_now{order.is_failure, cause});
  return order_carried_out{};
}

/// The program's thread ends it in good order if it is in a call, or makes one.
void ordered_ends::on_due(const end_process_now& due) {
  if (due.is_failure) return options_.kill_process();
  options_.client->put(job_failure{"this process is " + due.cause});
  self_->delayed_send(caf::actor_cast<caf::actor>(self_->address()), time_to_end,
                      end_process_now{1, due.cause});
}

caf::result<order_carried_out> ordered_ends::set(const set_log_level& order) {
  auto level = spdlog::level::from_str(order.level);
  if (level == spdlog::level::off && order.level != "off")
    return unavailable("expected a level of the log, got '" + order.level + "'");
  options_.log->set_level(level);
  return order_carried_out{};
}

}  // namespace troupe
