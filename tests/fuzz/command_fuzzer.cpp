// Commands to a job: their bodies, the audit log, and what an inspector answers. The first byte chooses.
#include <array>
#include <variant>

#include "fuzz/fuzzer.hpp"
#include "inspect/commands/job_command.hpp"
#include "inspect/job_snapshot.hpp"
#include "troupe/inspector/commands/audit_lines.hpp"
#include "troupe/inspector/commands/control_command.hpp"

namespace troupe::fuzz {
namespace {

using input = std::span<const std::byte>;
using json = nlohmann::ordered_json;

/// The first line is the command's name, the rest its body.
void try_command(input bytes) {
  auto text = text_of(bytes);
  auto name = text.substr(0, text.find('\n'));
  auto body = text.substr(std::min(text.size(), name.size() + 1));
  auto read = actors::inspector::control_command_from(name, body);
  if (const auto* refusal = std::get_if<actors::inspector::control_refusal>(&read))
    return expect(refusal->status >= 400 && !refusal->why.empty(), "a command is refused without a reason");
  const auto& command = std::get<actors::inspector::control_command>(read);
  expect(to_string(command.action) == name, "a command is taken for another one");
  bool has_target = command.rank.has_value() != !command.actor.empty();
  expect(has_target == is_disruptive(command.action), "a command has another target than it needs");
  job_command shown{std::string(name), json::parse(body)};
  static_cast<void>(shown.name());
  static_cast<void>(shown.deed());
}

std::vector<std::string> command_seeds() {
  return {"pause\n{}",
          "step\n{\"unit\": \"microbatch\", \"count\": 3}",
          "log_level\n{\"level\": \"debug\"}",
          "kill\n{\"actor\": \"1#0/device/1\"}",
          "restart\n{\"rank\": 2}",
          "restarts\n[[{}]]"};
}

void try_audit_log(input bytes) {
  for (const auto& command : actors::inspector::unfinished_commands(text_of(bytes), "job-7")) {
    static_cast<void>(outcome_after_replacement(command));
    auto line = actors::inspector::audit_line(
        1, "job-7", {.id = command.id, .action = command.action, .body = command.body});
    auto again = actors::inspector::unfinished_commands(line, "job-7");
    expect(again.size() == 1 && again[0].id == command.id, "a command is lost in the audit log");
  }
}

std::vector<std::string> audit_log_seeds() {
  auto first =
      actors::inspector::audit_line(1, "job-7", {.id = "1-1", .action = "kill", .body = R"({"rank": 0})"});
  auto second = actors::inspector::audit_line(2, "job-7", {.id = "1-2", .action = "pause", .body = "{}"});
  auto outcome = actors::inspector::audit_line(3, "job-7", "1-2", "pause",
                                               {actors::inspector::command_result::done, "paused", 4});
  return {first + "\n" + second + "\n" + outcome + "\n"};
}

void try_answer(input bytes) {
  job_command command{"kill", {{"rank", 1}}};
  auto text = std::string(text_of(bytes));
  for (int status : {202, 409})
    expect(command_answer_from(command, status, text).id.empty() || status == 202,
           "a command that was refused has an id");
  auto told = json::parse(text, nullptr, false);
  if (const auto* row = command_row(told, "1-1")) static_cast<void>(outcome_line(command, *row));
}

std::vector<std::string> answer_seeds() {
  return {R"({"id": "1-1"})", R"({"error": "no such rank"})",
          R"([{"id": "1-1", "outcome": "done", "text": "it was started again"}])"};
}

constexpr std::array decoders = {decoder{try_command, command_seeds}, decoder{try_audit_log, audit_log_seeds},
                                 decoder{try_answer, answer_seeds}};

}  // namespace

void try_input(std::span<const std::byte> bytes) { try_one_of(decoders, bytes); }

std::vector<std::string> seeds() { return seeds_of(decoders); }

}  // namespace troupe::fuzz
