#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "troupe/actor/child_id.hpp"
#include "troupe/inspector/commands/control_command.hpp"
#include "troupe/inspector/views/job_view.hpp"

namespace troupe::actors::inspector {

/// Which commands the job's processes can carry out, constant.
struct control_rules {
  bool has_launcher = false;        ///< a lost process is replaced
  std::optional<int> max_restarts;  ///< of the launcher; none: not known
};

/// Whom a command is for.
struct command_target {
  int rank = -1;                         ///< -1: the job
  std::uint32_t incarnation = 0;         ///< of the process: one that replaces it is not meant
  std::optional<actor::child_id> child;  ///< the actor; none: the process
  bool operator==(const command_target&) const = default;
};

/// "the process of rank 1", "device 1 of rank 1", "the job"
std::string to_string(const command_target& target);

/// Finds a command's target in what is known of the job. Refuses a command that can never be carried out
/// (404: there is no such target, 409: it cannot be done to it), with what to do.
std::variant<command_target, control_refusal> target_of(const control_command& command, const job_view& view,
                                                        const control_rules& rules);

/// Why a command that ends an actor or process must wait, since the job might not survive it now; empty: it
/// need not. `report`: the newest of this generation; null: there is none.
std::string reason_to_wait(const command_target& target, const messages::scheduler_report* report,
                           int world_size);

}  // namespace troupe::actors::inspector
