#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include "commands.hpp"
#include "inspect/commands/give_command.hpp"
#include "inspect/job_record.hpp"
#include "inspect/lost_processes.hpp"
#include "inspect/screen/draw.hpp"
#include "inspect/snapshot_source.hpp"
#include "inspect/terminal.hpp"
#include "inspect/watch_job.hpp"
#include "troupe/config/environment/inspect_environment.hpp"
#include "troupe/config/text_file.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

struct inspect_arguments {
  std::string url;
  std::filesystem::path token_file, record, replay;
  bool once = false, as_json = false, diagnose = false;
  std::optional<std::string> command;
  command_words command_details;  ///< what follows the action in --command
  bool yes = false;
};

inspector_address address_of(const inspect_arguments& arguments) {
  auto environment = config::read_inspect_environment(process_environment());
  auto url = arguments.url.empty() ? environment.url : arguments.url;
  if (url.empty())
    throw bad_input(
        "troupe inspect: expected the address that the job's start printed, as an argument or in "
        "TROUPE_INSPECT_URL, or --replay FILE");
  auto at = inspector_address_from(url);
  if (!arguments.token_file.empty()) {
    at.token = config::read_text_file(arguments.token_file, "file of --token-file");
    while (!at.token.empty() && (at.token.back() == '\n' || at.token.back() == '\r')) at.token.pop_back();
  }
  if (at.token.empty()) at.token = environment.token;
  if (at.token.empty())
    throw bad_input(
        "troupe inspect: the address has no #token=: give it whole, or --token-file FILE, or set "
        "TROUPE_INSPECT_TOKEN");
  return at;
}

void check(const inspect_arguments& arguments) {
  bool commands = arguments.command.has_value();
  int num_modes = int{arguments.once} + int{arguments.as_json && !arguments.diagnose && !commands} +
                  int{arguments.diagnose} + int{commands};
  if (num_modes > 1)
    throw bad_input(
        "troupe inspect: --once, --json, --diagnose and --command exclude each other (but "
        "--diagnose --json and --command COMMAND --json)");
  const auto& words = arguments.command_details;
  bool has_details = !words.unit.empty() || words.count || !words.level.empty() || !words.actor.empty() ||
                     words.rank || arguments.yes;
  if (has_details && !commands)
    throw bad_input(
        "troupe inspect: --unit, --count, --level, --actor, --rank and --yes are about a command: expected "
        "--command COMMAND with them");
  if (!arguments.record.empty() && (num_modes > 0 || !arguments.replay.empty()))
    throw bad_input(
        "troupe inspect: --record FILE goes with a running job's views alone, not with --once, --json, "
        "--diagnose, --command or --replay");
  if (commands && !arguments.replay.empty())
    throw bad_input(
        "troupe inspect: --command is for a running job, and a record is none: leave out --replay");
  if (!arguments.replay.empty() && !arguments.url.empty())
    throw bad_input("troupe inspect: --replay FILE shows a record and no running job: leave out '" +
                    arguments.url + "'");
}

void print(const screen& rows) {
  for (const auto& row : rows) {
    auto text = row.text;
    text.erase(text.find_last_not_of(' ') + 1);
    std::printf("%s\n", text.c_str());
  }
}

void print(const json& value) {
  std::printf("%s\n", value.dump(-1, ' ', false, json::error_handler_t::replace).c_str());
}

/// 1 if something is wrong.
int print_findings(const job_snapshot& job, bool as_json) {
  const auto& findings = job.rows("findings");
  if (as_json) print({{"at_ms", job.at_ms}, {"findings", findings}});
  for (const auto& one : findings) {
    if (as_json) break;
    std::printf("%s: %s\n", printable(text_in(one, "kind", "?")).c_str(),
                printable(text_in(one, "text")).c_str());
  }
  if (!as_json && findings.empty()) std::printf("nothing is wrong, as far as can be seen\n");
  return findings.empty() ? 0 : 1;
}

/// The job's state printed in the form that was asked for.
int print_job(const job_snapshot& job, const inspect_arguments& arguments) {
  constexpr std::size_t columns = 80;
  if (arguments.diagnose) return print_findings(job, arguments.as_json);
  if (arguments.as_json) {
    json whole = {{"at_ms", job.at_ms}};
    whole.update(job.parts);
    print(whole);
  } else {
    print(draw_all(job, columns));
  }
  return 0;
}

/// Whether `url` names a folder instead of an address, which may be longer than the name of any file.
bool is_folder(const std::string& url) {
  std::error_code problem;
  bool found = std::filesystem::is_directory(url, problem);
  if (problem == std::errc::too_many_symbolic_link_levels || problem == std::errc::permission_denied)
    throw bad_input("cannot read the folder '" + url + "': " + problem.message());
  return found;
}

/// What a folder of `troupe launch --log-dir` keeps of lost processes.
int inspect_lost(const inspect_arguments& arguments, bool prints) {
  if (arguments.diagnose || !arguments.record.empty() || arguments.command)
    throw bad_input("troupe inspect: --diagnose, --record and --command are for running jobs; " +
                    arguments.url + " is a folder with what lost processes did last");
  auto lost = snapshot_of_lost_processes(arguments.url);
  if (prints) return print_job(lost, arguments);
  return replay_job({1, [&](std::size_t) { return lost; }, "what lost processes did last; 5: all events",
                     "what lost processes left"});
}

int send_command(const inspect_arguments& arguments, const inspector_address& address) {
  auto words = arguments.command_details;
  words.action = *arguments.command;
  auto command = command_from(words);
  if (command.is_disruptive() && !arguments.yes && !is_confirmed(command)) return 1;
  return give_command(address, command, arguments.as_json ? outcome_form::json : outcome_form::text);
}

int inspect(const inspect_arguments& arguments) {
  check(arguments);
  bool prints = arguments.once || arguments.as_json || arguments.diagnose;
  if (!arguments.replay.empty()) {
    job_record record(arguments.replay);
    if (!prints)
      return replay_job(
          {record.size(), [&](std::size_t index) { return record.at(index); }, record.warning()});
    if (!record.warning().empty()) std::fprintf(stderr, "troupe: %s\n", record.warning().c_str());
    return print_job(record.at(record.size() - 1), arguments);
  }
  if (is_folder(arguments.url)) return inspect_lost(arguments, prints);
  auto at = address_of(arguments);
  try {
    if (arguments.command) return send_command(arguments, at);
    if (prints) {
      snapshot_source source(at);
      auto job = source.read();
      if (arguments.diagnose) source.require_fresh();
      return print_job(job, arguments);
    }
    if (!arguments.record.empty() && !is_on_terminal()) return record_job(at, arguments.record);
    return watch_job(at, arguments.record);
  } catch (const http::http_failure& problem) {
    std::fprintf(
        stderr,
        "troupe: cannot ask the inspector, %s. Does the job run, and is this its newest address? A process "
        "that replaces rank 0 prints another one, unless --inspect names a port\n",
        problem.what());
  } catch (const inspector_refusal& problem) {
    std::fprintf(stderr, "troupe: %s\n", problem.what());
  }
  return 2;
}

void add_control_options(CLI::App& app, inspect_arguments& arguments) {
  auto& words = arguments.command_details;
  app.add_option("--command", arguments.command,
                 "Give the job a command (--inspect-control of the job), and print what came of it: pause, "
                 "resume, step, snapshot, log_level, restart or kill. Exit code 0: it is done, 1: it is "
                 "not, 2: the job could not be asked");
  app.add_option("--unit", words.unit, "Of --command step: step (default), microbatch or action");
  app.add_option("--count", words.count, "Of --command step: so many units; default: 1");
  app.add_option("--level", words.level, "Of --command log_level: trace, debug, info, warn or error");
  app.add_option("--actor", words.actor, "Of --command restart and kill: this actor");
  app.add_option("--rank", words.rank, "Of --command restart and kill: the process of this rank");
  app.add_flag("--yes", arguments.yes, "Of --command restart and kill: do not ask before");
}

}  // namespace

void add_inspect_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<inspect_arguments>();
  auto* command =
      app.add_subcommand("inspect", "Watch a running job on this terminal (--inspect of the job)");
  command->add_option(
      "URL", arguments->url,
      "Address that the job's start printed; default: TROUPE_INSPECT_URL. Or the folder of `troupe launch "
      "--log-dir`: what lost processes did last");
  command->add_option("--token-file", arguments->token_file,
                      "File with the token, where the address has none; else TROUPE_INSPECT_TOKEN");
  command->add_flag("--once", arguments->once, "Print the job's state once, as text");
  command->add_flag("--json", arguments->as_json, "Print it as one JSON object");
  command->add_flag("--diagnose", arguments->diagnose,
                    "Print what is wrong. Exit code 0: nothing, 1: something, 2: the job could not be asked");
  command->add_option("--record", arguments->record, "Also write all that is shown to this file");
  command->add_option("--replay", arguments->replay, "Show such a file in place of a running job");
  add_control_options(*command, *arguments);
  command->callback([arguments, &exit_code] { exit_code = inspect(*arguments); });
}

}  // namespace troupe
