#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/inspector/commands/command_outcome.hpp"

namespace troupe::actors::inspector {

/// Who has sent a command, and what.
struct audited_command {
  std::string id = {};          ///< empty: it was not taken
  std::string caller = {};      ///< "127.0.0.1:41873"
  std::string credential = {};  ///< "bearer", "cookie"
  std::string user_agent = {};
  std::string action = {};  ///< the last part of the request's path, as it came
  std::string body = {};    ///< the request's body, as it came
  int status = 202;         ///< HTTP status of the answer
  std::string error = {};   ///< empty: it was taken
};

// A line of the audit log (docs/inspect.md), a JSON object without line end: a command, or the outcome of
// one. Texts of callers are cut to a bounded length, and bytes that are no UTF-8 are replaced.
std::string audit_line(std::int64_t at_ms, const std::string& job_id, const audited_command& command);
std::string audit_line(std::int64_t at_ms, const std::string& job_id, const std::string& id,
                       const std::string& action, const command_outcome& outcome);

/// The commands of one job that no outcome follows, in their order, with id, action and body. Lines of other
/// jobs, and what is no line of this version, are skipped.
std::vector<audited_command> unfinished_commands(std::string_view lines, const std::string& job_id);

/// What became of a command when rank 0 was replaced, whose process had it.
command_outcome outcome_after_replacement(const audited_command& command);

}  // namespace troupe::actors::inspector
