#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "inspect/screen/screen.hpp"

namespace troupe {

/// A command to a job: POST /api/v1/control/`action` with this body (docs/inspect.md, "Control").
struct job_command {
  std::string action;
  nlohmann::ordered_json body = nlohmann::ordered_json::object();
  /// "kill 1#0/device/1": the command in every text about it.
  std::string name() const;
  /// "kill 1#0/device/1, as if it had failed": what it will do, for a question.
  std::string deed() const;
  /// Whether it ends an actor or a process.
  bool is_disruptive() const { return action == "kill" || action == "restart"; }
  bool operator==(const job_command&) const = default;
};

/// What was typed behind `--command`; empty and none: the option was not given.
struct command_words {
  std::string action = {};
  std::string unit = {};
  std::optional<std::int64_t> count = {};
  std::string level = {};
  std::string actor = {};
  std::optional<int> rank = {};
};
/// Throws bad_input for a command that there is not, an option that is missing, and one that another command
/// has.
job_command command_from(const command_words& words);

/// What an inspector has answered to a command.
struct command_answer {
  job_command command;
  std::string id;       ///< empty: it was not taken
  std::string problem;  ///< why not, or why that is not known
  int status = 0;  ///< HTTP status; 0: there was no answer, so it is not known whether the command was taken
};
command_answer command_answer_from(const job_command& command, int status, const std::string& body);

/// The command's row in /api/v1/commands; null: it has none.
const nlohmann::ordered_json* command_row(const nlohmann::ordered_json& commands, const std::string& id);
/// "done", "refused", ... of a row; empty: the command is not carried out yet.
std::string outcome_of(const nlohmann::ordered_json& row);
/// What became of the command, by its row, in a line: "kill 1#0/device/1: done: it was started again, start
/// 2".
screen_row outcome_line(const job_command& command, const nlohmann::ordered_json& row);

/// An inspector that has no row of a command for so long never will: it is another process than that which
/// has taken the command.
constexpr std::int64_t most_unknown_ms = 10'000;
extern const char* const unknown_command_text;

}  // namespace troupe
