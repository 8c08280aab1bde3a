#include "inspect/commands/give_command.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <thread>

#include "inspect/commands/command_client.hpp"
#include "inspect/job_snapshot.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;
using clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds poll_interval{100};

/// The row of a command that has none in the inspector.
json row_without(const job_command& command, const std::string& id, const char* outcome,
                 const std::string& text) {
  return {{"id", id.empty() ? json() : json(id)},
          {"action", command.action},
          {"target", nullptr},
          {"rank", nullptr},
          {"outcome", outcome},
          {"text", text},
          {"at_ms", nullptr}};
}

int print_outcome(const job_command& command, const json& row, outcome_form form) {
  auto text = form == outcome_form::json ? row.dump(-1, ' ', false, json::error_handler_t::replace)
                                         : printable(outcome_line(command, row).text);
  std::printf("%s\n", text.c_str());
  return outcome_of(row) == "done" ? 0 : 1;
}

int say_unknown(const job_command& command, const std::string& what) {
  std::fprintf(stderr, "troupe: %s: %s\n", printable(command.name()).c_str(), printable(what).c_str());
  return 2;
}

/// Asks until the command has an outcome. An inspector may be gone for a while: the process that replaces
/// rank 0 serves again.
int wait_for_outcome(command_client& client, const command_answer& taken, outcome_form form) {
  auto known_at = clock::now();
  while (true) {
    std::string silence;
    std::optional<json> row;
    try {
      auto rows = client.commands();
      if (const auto* found = command_row(rows, taken.id)) row = *found;
    } catch (const http::http_failure& problem) {
      silence = problem.what();
    }
    if (row && !outcome_of(*row).empty()) return print_outcome(taken.command, *row, form);
    if (row) known_at = clock::now();
    bool is_over = clock::now() - known_at >= std::chrono::milliseconds(most_unknown_ms);
    if (is_over && silence.empty())
      return print_outcome(taken.command, row_without(taken.command, taken.id, "lost", unknown_command_text),
                           form);
    if (is_over)
      return say_unknown(
          taken.command,
          "it was taken as " + taken.id + ", and then nobody answered for 10 s (" + silence +
              "): the job has ended, or rank 0 was replaced and serves at another address. The "
              "audit log tells what became of it");
    std::this_thread::sleep_for(poll_interval);
  }
}

}  // namespace

bool is_confirmed(const job_command& command) {
  if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDERR_FILENO) == 0)
    throw bad_input("troupe inspect --command " + command.action +
                    ": expected --yes, since there is no terminal to ask on whether to " + command.deed());
  std::fprintf(stderr, "%s? y: yes, anything else: no  ", printable(command.deed()).c_str());
  std::string line;
  std::getline(std::cin, line);
  if (line == "y" || line == "yes") return true;
  std::fprintf(stderr, "troupe: %s: not sent\n", printable(command.name()).c_str());
  return false;
}

int give_command(const inspector_address& address, const job_command& command, outcome_form form) {
  command_client client(address);
  client.commands();  // to say before anything is sent that nobody answers
  auto answer = client.send(command);
  if (!answer.id.empty()) return wait_for_outcome(client, answer, form);
  if (answer.status == 0)
    return say_unknown(command,
                       answer.problem + ". It was taken or not: look at the job, or at the audit log");
  auto row = row_without(command, {}, "refused", answer.problem);
  row["status"] = answer.status;
  return print_outcome(command, row, form);
}

}  // namespace troupe
