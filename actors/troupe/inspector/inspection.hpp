#pragma once
#include <spdlog/logger.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "troupe/http/http_server.hpp"
#include "troupe/inspector/commands/audit_log.hpp"
#include "troupe/inspector/commands/control_intake.hpp"
#include "troupe/inspector/inspector_routes.hpp"
#include "troupe/inspector/views/job_view.hpp"
#include "troupe/inspector/views/log_tail.hpp"
#include "troupe/trace/trace.hpp"

namespace troupe::actors::inspector {

struct inspection_options {
  std::string address;  ///< see listen_address_from
  /// A file with the token to use, see token_problem; empty: `job_token`.
  std::filesystem::path token_file;
  std::string job_token;  ///< a secret of this job alone
  std::string host_name;  ///< name of this machine
  const trace::trace_recorder* trace = nullptr;
  /// Whether those with the token may give commands, and which the job's processes can carry out.
  bool takes_commands = false;
  control_rules rules = {};
  audit_options audit = {};
  std::uint32_t incarnation = 0;        ///< how often the process of this rank was started again
  std::shared_ptr<spdlog::logger> log;  ///< whose level is shown; required with takes_commands
};

/// How a job is watched from outside: an HTTP server and what it shows. The inspector_actor fills `job()`.
class inspection {
 public:
  /// Listens when this returns. Throws bad_input for
  /// - an address that cannot be used
  /// - a token file that holds no token
  /// - an address that others can reach, without a token file
  /// - an audit log that cannot be written
  explicit inspection(const inspection_options& options);

  /// The job is known by this id. Where this process has replaced another, the commands that were lost with
  /// that one get their outcome.
  void begin(const std::string& job_id);
  /// The job has ended, and its actors in this process too: commands that are open get their outcome.
  void end();

  const std::shared_ptr<inspected_job>& job() const { return job_; }
  /// For the process's logger.
  const std::shared_ptr<log_tail>& log() const { return log_; }
  /// With the token behind its '#', which browsers do not send.
  const std::string& url() const { return url_; }
  /// What a user must know who lets others reach the server; empty: they cannot.
  const std::string& warning() const { return warning_; }

 private:
  std::shared_ptr<control_intake> begin_control(const inspection_options& options);

  std::shared_ptr<inspected_job> job_ = std::make_shared<inspected_job>();
  std::shared_ptr<log_tail> log_ = std::make_shared<log_tail>();
  std::shared_ptr<audit_log> audit_;  ///< null: no commands are taken
  std::unique_ptr<http::http_server> server_;
  std::string url_, warning_;
};

}  // namespace troupe::actors::inspector
