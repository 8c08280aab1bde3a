#include "troupe/inspector/inspection.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "troupe/config/text_file.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/inspector/commands/audit_lines.hpp"
#include "troupe/inspector/commands/open_commands.hpp"
#include "troupe/inspector/page_files.hpp"
#include "troupe/inspector/views/views.hpp"
#include "troupe/messaging/job_secret.hpp"
#include "troupe/posix/files/safe_file.hpp"
#include "troupe/posix/unix_time.hpp"

namespace troupe::actors::inspector {
namespace {

std::string token_in(const std::filesystem::path& file) {
  auto token = config::read_text_file(file, "file of --inspect-token-file");
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  if (auto problem = http::token_problem(token); !problem.empty())
    throw bad_input("--inspect-token-file " + file.string() + " holds no token: " + problem);
  return token;
}

/// What `make` returns. Its errors name the option.
template <class Make>
auto of_option(const Make& make) {
  try {
    return make();
  } catch (const bad_input& problem) {
    throw bad_input(std::string("--inspect: ") + problem.what());
  }
}

/// An address that stands for all of the machine is no place for a browser to go to.
std::string shown_address(http::listen_address endpoint, const std::string& host_name) {
  if (endpoint.address != "0.0.0.0" && endpoint.address != "::") return to_string(endpoint);
  return host_name + ":" + std::to_string(endpoint.port);
}

}  // namespace

inspection::inspection(const inspection_options& options) {
  http::http_server_options served;
  served.address = of_option([&] { return http::listen_address_from(options.address); });
  if (!served.address.is_loopback() && options.token_file.empty())
    throw bad_input("--inspect " + options.address +
                    " can be reached by other machines: choose the token yourself, in a "
                    "file that only you can read, and name it with --inspect-token-file FILE; or leave the "
                    "address out for this machine alone");
  http::access_policy policy;
  policy.token = options.token_file.empty() ? options.job_token : token_in(options.token_file);
  policy.session = wire::to_hex(messaging::make_job_secret());
  policy.public_paths = {"/", "/healthz"};
  for (const auto& file : page_files()) policy.public_paths.emplace_back(file.path);
  if (!served.address.is_loopback()) policy.host_names = {options.host_name};
  server_ = of_option([&] { return std::make_unique<http::http_server>(served, job_->events()); });
  const auto& at = server_->address();
  policy.cookie_name = "troupe_" + std::to_string(at.port);
  url_ = "http://" + shown_address(at, options.host_name) + "/#token=" + policy.token;
  if (!at.is_loopback())
    warning_ = "the inspector listens on " + to_string(at) +
               ": whoever reaches it and has the token can watch this job, and nothing is encrypted";
  if (auto others = posix::others_who_may_read(options.token_file); !others.empty())
    warning_ += (warning_.empty() ? "" : ". ") + std::string("--inspect-token-file ") +
                options.token_file.string() + " is no secret: " + others +
                ". Make it a file of your own, and `chmod 600` it";
  auto control = options.takes_commands ? begin_control(options) : nullptr;
  auto routes = std::make_shared<inspector_routes>(
      std::move(policy), inspector_sources{job_, log_, options.trace, std::move(control), options.log});
  server_->serve([routes](const http::http_request& request) { return routes->answer(request); });
}

/// The inspector's actor, which ends commands, must not wait for the disk.
std::shared_ptr<control_intake> inspection::begin_control(const inspection_options& options) {
  audit_ = std::make_shared<audit_log>(options.audit, options.log);
  auto write = [audit = audit_, job = std::weak_ptr(job_)](const open_command& one,
                                                           const command_outcome& outcome) {
    if (auto known = job.lock())
      audit->append_later(audit_line(posix::unix_now_ms(), known->job_id(), one.id,
                                     std::string(to_string(one.command.action)), outcome));
  };
  job_->take_commands(std::make_shared<open_commands>(write));
  return std::make_shared<control_intake>(job_, audit_, options.rules, options.incarnation);
}

void inspection::begin(const std::string& job_id) {
  job_->set_job_id(job_id);
  if (!audit_) return;
  for (const auto& lost : unfinished_commands(audit_->newest(), job_id)) {
    auto outcome = outcome_after_replacement(lost);
    auto now = posix::unix_now_ms();
    audit_->append_later(audit_line(now, job_id, lost.id, lost.action, outcome));
    command_row ended{lost.id, lost.action, {}, -1, outcome, now};
    job_->events()->append("control", text_of(command_json(ended)));
    job_->commands()->add_ended(std::move(ended));
  }
}

void inspection::end() {
  if (!audit_) return;
  for (const auto& one : job_->commands()->all()) end_command(*job_, one.id, outcome_at_end(one));
}

}  // namespace troupe::actors::inspector
