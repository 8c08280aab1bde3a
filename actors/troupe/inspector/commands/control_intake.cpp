#include "troupe/inspector/commands/control_intake.hpp"

#include <nlohmann/json.hpp>

#include "troupe/inspector/views/views.hpp"
#include "troupe/posix/unix_time.hpp"

namespace troupe::actors::inspector {
namespace {

using json = nlohmann::ordered_json;

http::http_response json_answer(int status, const json& value) {
  http::http_response response;
  response.status = status;
  response.content_type = "application/json";
  response.body = text_of(value) + "\n";
  return response;
}

/// "application/json", with parameters or without.
bool is_json(const http::http_request& request) {
  auto types = request.values("content-type");
  if (types.size() != 1) return false;
  auto type = types[0].substr(0, types[0].find_first_of("; \t"));
  return type == "application/json";
}

audited_command audited_from(std::string_view name, const http::http_request& request) {
  auto agents = request.values("user-agent");
  audited_command command;
  command.caller = request.caller;
  command.credential = request.values("authorization").empty() ? "cookie" : "bearer";
  command.user_agent = agents.empty() ? std::string() : std::string(agents[0]);
  command.action = name;
  command.body = request.body;
  return command;
}

}  // namespace

http::http_response control_intake::take(std::string_view name, const http::http_request& request) {
  auto found = read(name, request);
  if (const auto* why = std::get_if<control_refusal>(&found))
    return refuse(*why, audited_from(name, request));
  return answer_taken(std::get<open_command>(std::move(found)), audited_from(name, request));
}

std::variant<open_command, control_refusal> control_intake::read(std::string_view name,
                                                                 const http::http_request& request) const {
  if (request.target.find('?') != std::string::npos)
    return control_refusal{400, "expected the command in the body, got parameters in the address"};
  if (!is_json(request))
    return control_refusal{415,
                           "expected one header 'Content-Type: application/json', with the command in the "
                           "body; for those without more to say it is {}"};
  auto parsed = control_command_from(name, request.body);
  if (const auto* why = std::get_if<control_refusal>(&parsed)) return *why;
  auto view = job_->view();
  auto command = std::get<control_command>(std::move(parsed));
  auto target = target_of(command, view ? *view : job_view(), rules_);
  if (auto* why = std::get_if<control_refusal>(&target)) {
    why->why = std::string(name) + ": " + why->why;
    return *why;
  }
  open_command taken;
  taken.command = std::move(command);
  taken.target = std::get<command_target>(target);
  return taken;
}

http::http_response control_intake::answer_taken(open_command command, audited_command audited) {
  command.id = audited.id = std::to_string(incarnation_) + "-" + std::to_string(num_taken_ + 1);
  if (!audit_->append(audit_line(posix::unix_now_ms(), job_->job_id(), audited)))
    return json_answer(503,
                       {{"error",
                         "the audit log cannot be written, and no command is taken without it: rank 0's log "
                         "says why. If that is off (--log-level off), start the job with "
                         "--inspect-audit-log FILE"}});
  ++num_taken_;
  json taken = {{"id", command.id}, {"action", audited.action}, {"target", to_string(command.target)}};
  auto posted = job_->commands()->post(std::move(command));
  if (posted == open_commands::posted::taken) return json_answer(202, taken);
  std::string why = posted == open_commands::posted::full
                        ? "there are " + std::to_string(open_commands::max_open) +
                              " commands that are not carried out yet: try again when some are"
                        : "the actor that carries commands out does not run: try again in a second. If it "
                          "stays so, it has failed too often, which the log says";
  audit_->append(audit_line(posix::unix_now_ms(), job_->job_id(), audited.id, audited.action,
                            {command_result::refused, why, {}}));
  return json_answer(503, {{"error", why}});
}

http::http_response control_intake::refuse(const control_refusal& why, audited_command audited) {
  audited.status = why.status;
  audited.error = why.why;
  audit_->append(audit_line(posix::unix_now_ms(), job_->job_id(), audited));
  return json_answer(why.status, {{"error", why.why}});
}

}  // namespace troupe::actors::inspector
