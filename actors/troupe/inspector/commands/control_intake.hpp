#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "troupe/http/http_message.hpp"
#include "troupe/inspector/commands/audit_lines.hpp"
#include "troupe/inspector/commands/audit_log.hpp"
#include "troupe/inspector/commands/command_target.hpp"
#include "troupe/inspector/commands/open_commands.hpp"
#include "troupe/inspector/views/job_view.hpp"

namespace troupe::actors::inspector {

/// Takes the commands of those who watch a job, on the server's thread: reads and checks them, writes them
/// into the audit log, and posts them to the inspector. No command is posted that is not in the audit log.
/// For one thread.
class control_intake {
 public:
  /// `incarnation`: of this process; ids of commands begin with it.
  control_intake(std::shared_ptr<inspected_job> job, std::shared_ptr<audit_log> audit, control_rules rules,
                 std::uint32_t incarnation)
      : job_(std::move(job)), audit_(std::move(audit)), rules_(rules), incarnation_(incarnation) {}

  /// The answer to a POST of /api/v1/control/`name` that may be answered (check_access): status 202 and what
  /// was taken, or {"error": why not}.
  http::http_response take(std::string_view name, const http::http_request& request);

 private:
  std::variant<open_command, control_refusal> read(std::string_view name,
                                                   const http::http_request& request) const;
  http::http_response answer_taken(open_command command, audited_command audited);
  http::http_response refuse(const control_refusal& why, audited_command audited);

  std::shared_ptr<inspected_job> job_;
  std::shared_ptr<audit_log> audit_;
  control_rules rules_;
  std::uint32_t incarnation_;
  std::uint64_t num_taken_ = 0;
};

}  // namespace troupe::actors::inspector
