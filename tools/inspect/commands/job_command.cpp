#include "inspect/commands/job_command.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "inspect/job_snapshot.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

constexpr std::array actions = {"pause", "resume", "step", "snapshot", "log_level", "restart", "kill"};

[[noreturn]] void refuse_command(const std::string& what) {
  throw bad_input("troupe inspect --command: " + what);
}

std::string listed(std::initializer_list<std::string_view> words) {
  std::string list;
  for (auto word : words) list += (list.empty() ? "" : ", ") + std::string(word);
  return list;
}

/// An option that another command has would be ignored.
void check_options(const command_words& words) {
  auto refuse_with = [&](bool is_given, const char* option,
                         std::initializer_list<std::string_view> commands) {
    if (is_given && std::ranges::find(commands, words.action) == commands.end())
      refuse_command(std::string("expected ") + option + " with " + listed(commands) + " only, got it with " +
                     words.action + ": leave it out");
  };
  refuse_with(!words.unit.empty(), "--unit", {"step"});
  refuse_with(words.count.has_value(), "--count", {"step"});
  refuse_with(!words.level.empty(), "--level", {"log_level"});
  refuse_with(!words.actor.empty(), "--actor", {"restart", "kill"});
  refuse_with(words.rank.has_value(), "--rank", {"restart", "kill"});
}

json step_from(const command_words& words) {
  constexpr std::int64_t most_steps = 1'000'000'000, most_smaller = 1000;  // what an inspector takes
  auto unit = words.unit.empty() ? "step" : words.unit;
  if (unit != "step" && unit != "microbatch" && unit != "action")
    refuse_command("expected --unit step, microbatch or action with step, got '" + unit + "'");
  auto most = unit == "step" ? most_steps : most_smaller;
  auto count = words.count.value_or(1);
  if (count < 1 || count > most)
    refuse_command("expected --count from 1 to " + std::to_string(most) + " with --unit " + unit + ", got " +
                   std::to_string(count));
  return {{"unit", unit}, {"count", count}};
}

json target_from(const command_words& words) {
  if (words.actor.empty() == !words.rank)
    refuse_command("expected either --actor ID (of /api/v1/actors) or --rank R with " + words.action +
                   ", got " + (words.rank ? "both" : "neither"));
  return words.rank ? json{{"rank", *words.rank}} : json{{"actor", words.actor}};
}

std::string target_text(const json& body) {
  if (auto actor = text_in(body, "actor"); !actor.empty()) return printable(actor);
  return "the process of rank " + std::to_string(static_cast<std::int64_t>(number_in(body, "rank")));
}

std::string step_text(const json& body) {
  auto count = static_cast<std::int64_t>(number_in(body, "count", 1));
  auto unit = text_in(body, "unit", "step");
  auto name = unit == "step" ? "optimizer step" : unit;
  return std::to_string(count) + " " + name + (count == 1 ? "" : name.ends_with("ch") ? "es" : "s");
}

}  // namespace

std::string job_command::name() const {
  if (action == "step") return "step of " + step_text(body);
  if (action == "log_level") return "log level " + text_in(body, "level");
  return is_disruptive() ? action + " " + target_text(body) : action;
}

std::string job_command::deed() const {
  bool is_actor = body.contains("actor");
  if (action == "pause") return "pause the job";
  if (action == "resume") return "let the job go on";
  if (action == "step") return "let the job do " + step_text(body) + " and pause after it";
  if (action == "snapshot") return "write a snapshot";
  if (action == "log_level") return "log from " + text_in(body, "level") + " on in all processes";
  if (action == "kill") return name() + (is_actor ? ", as if it had failed" : " with SIGKILL");
  return name() + (is_actor ? "" : ", which ends cleanly");
}

job_command command_from(const command_words& words) {
  if (std::ranges::find(actions, words.action) == actions.end())
    refuse_command("expected one of pause, resume, step, snapshot, log_level, restart, kill, got '" +
                   words.action + "'");
  check_options(words);
  job_command command{words.action};
  if (words.action == "step") command.body = step_from(words);
  if (words.action == "log_level") {
    if (words.level.empty())
      refuse_command("expected --level trace, debug, info, warn or error with log_level");
    command.body = {{"level", words.level}};
  }
  if (command.is_disruptive()) command.body = target_from(words);
  return command;
}

command_answer command_answer_from(const job_command& command, int status, const std::string& body) {
  auto told = json::parse(body, nullptr, false);
  command_answer answer{command, {}, {}, status};
  if (status == 202) answer.id = text_in(told, "id");
  if (answer.id.empty())
    answer.problem = text_in(told, "error", "status " + std::to_string(status) + ": " + body.substr(0, 200));
  return answer;
}

const json* command_row(const json& commands, const std::string& id) {
  for (const auto& row : commands)
    if (text_in(row, "id") == id) return &row;
  return nullptr;
}

std::string outcome_of(const json& row) { return text_in(row, "outcome"); }

screen_row outcome_line(const job_command& command, const json& row) {
  auto outcome = outcome_of(row);
  return {command.name() + ": " + outcome + ": " + text_in(row, "text"),
          outcome == "done" ? row_style::plain : row_style::bad};
}

const char* const unknown_command_text =
    "the inspector does not know the command: rank 0 was replaced, or its Troupe is older. It was carried "
    "out "
    "or not: look at the job";

}  // namespace troupe
