#pragma once
#include <caf/event_based_actor.hpp>
#include <caf/result.hpp>
#include <chrono>
#include <set>
#include <string>

#include "troupe/messages/supervisor_commands.hpp"
#include "troupe/recovery/restart_policy.hpp"
#include "troupe/supervisor/job_children.hpp"
#include "troupe/supervisor/state/supervision_tree.hpp"
#include "troupe/supervisor/supervisor_options.hpp"

namespace troupe::actors::supervisor {

/// Carries out the commands of those who watch the job to one process: ends its actors, whose down messages
/// then take the way of every failure, or ends the process itself, which the launcher replaces. Refuses what
/// would end the job.
class requested_ends {
 public:
  /// Between the answer to a command and the end of the process: the agent hears why it ends.
  static constexpr std::chrono::milliseconds before_end{100};
  /// How long a program that is told to end may take before it gets SIGKILL.
  static constexpr std::chrono::seconds time_to_end{10};

  /// All outlive this object.
  requested_ends(caf::event_based_actor* self, const supervisor_options& options, job_children& children,
                 supervision_tree& tree, const recovery::restart_intensity& inspector_restarts)
      : self_(self),
        options_(options),
        children_(children),
        tree_(tree),
        inspector_restarts_(inspector_restarts) {}

  caf::result<messages::command_carried_out> end(const messages::end_actor& command);
  caf::result<messages::command_carried_out> end(const messages::end_process& command);
  void on_due(const messages::end_process_now& due);
  caf::result<messages::command_carried_out> set(const messages::set_log_level& command);
  /// Whether the child has ended because it is to be started again; once for each.
  bool take_requested_restart(const child_id& ended) { return restarts_.erase(ended) > 0; }

 private:
  std::string reason_against(const child_id& child);

  // constant
  caf::event_based_actor* self_;
  const supervisor_options& options_;
  job_children& children_;
  supervision_tree& tree_;
  const recovery::restart_intensity& inspector_restarts_;

  std::set<child_id> restarts_;  ///< ended, and their down messages have not come yet
  bool is_ending_ = false;       ///< the process was told to end
};

}  // namespace troupe::actors::supervisor
