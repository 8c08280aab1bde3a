#include "troupe/inspector/commands/audit_lines.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <nlohmann/json.hpp>

#include "troupe/inspector/commands/control_command.hpp"

namespace troupe::actors::inspector {
namespace {

using json = nlohmann::ordered_json;

constexpr int audit_version = 1;
constexpr std::size_t longest_user_agent = 200, longest_body = 500, longest_action = 60;

/// "2026-11-25T14:20:18.123Z"
std::string iso_time(std::int64_t at_ms) {
  auto seconds = static_cast<std::time_t>(at_ms / 1000);
  std::tm fields{};
  ::gmtime_r(&seconds, &fields);
  std::array<char, 32> text{};
  std::string whole(text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S.", &fields));
  auto rest = std::to_string(1000 + at_ms % 1000);
  return whole + rest.substr(1) + "Z";
}

json audit_line_of(std::int64_t at_ms, const std::string& job_id, const std::string& id) {
  return {{"version", audit_version},
          {"time", iso_time(at_ms)},
          {"at_ms", at_ms},
          {"job_id", job_id},
          {"id", id.empty() ? json() : json(id)}};
}

std::string dumped_line(const json& line) {
  return line.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string text_at(const json& line, const char* key) {
  auto found = line.find(key);
  return found != line.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

std::string audit_line(std::int64_t at_ms, const std::string& job_id, const audited_command& command) {
  auto line = audit_line_of(at_ms, job_id, command.id);
  line["action"] = command.action.substr(0, longest_action);
  line["caller"] = command.caller;
  line["by"] = command.credential;
  line["user_agent"] = command.user_agent.substr(0, longest_user_agent);
  line["body"] = command.body.substr(0, longest_body);
  line["status"] = command.status;
  line["error"] = command.error.empty() ? json() : json(command.error);
  return dumped_line(line);
}

std::string audit_line(std::int64_t at_ms, const std::string& job_id, const std::string& id,
                       const std::string& action, const command_outcome& outcome) {
  auto line = audit_line_of(at_ms, job_id, id);
  line["action"] = action;
  line["outcome"] = to_string(outcome.result);
  line["text"] = outcome.text;
  if (outcome.step) line["step"] = *outcome.step;
  return dumped_line(line);
}

std::vector<audited_command> unfinished_commands(std::string_view lines, const std::string& job_id) {
  std::vector<audited_command> open;
  while (!lines.empty()) {
    auto text = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(lines.size(), text.size() + 1));
    auto line = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
    if (!line.is_object() || line.value("version", json()) != json(audit_version)) continue;
    auto id = text_at(line, "id");
    if (id.empty() || text_at(line, "job_id") != job_id) continue;
    if (line.contains("outcome"))
      std::erase_if(open, [&](const audited_command& one) { return one.id == id; });
    else if (line.value("status", json()) == json(202))
      open.push_back({.id = id, .action = text_at(line, "action"), .body = text_at(line, "body")});
  }
  return open;
}

command_outcome outcome_after_replacement(const audited_command& command) {
  auto read = control_command_from(command.action, command.body);
  const auto* wanted = std::get_if<control_command>(&read);
  if (wanted && is_disruptive(wanted->action) && wanted->rank == 0)
    return {command_result::done, "the process of rank 0 was replaced", {}};
  return {command_result::lost,
          "rank 0 was replaced while it had the command, which was carried out or not: look at the job, and "
          "repeat what it lacks",
          {}};
}

}  // namespace troupe::actors::inspector
