#include "commands.hpp"
#include "launcher.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

struct launch_arguments {
  launch_options options;
  std::vector<std::string> drills;
  double join_timeout_s = 60;
  double suspect_after_s = 1;
};

std::chrono::milliseconds milliseconds_from(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

int launch(launch_arguments arguments, std::vector<std::string> command) {
  if (!command.empty() && command.front() == "--")
    command.erase(command.begin());
  else if (!command.empty() && command.front().starts_with("-"))
    throw bad_input("troupe launch has no option '" + command.front() +
                    "'. See `troupe launch --help`; the program's options come after the program");
  auto& options = arguments.options;
  options.command = std::move(command);
  options.join_timeout = milliseconds_from(arguments.join_timeout_s);
  options.suspect_after = milliseconds_from(arguments.suspect_after_s);
  for (const auto& text : arguments.drills) options.drills.push_back(parse_drill(text));
  return launcher(std::move(options)).run();
}

/// From the first word that is no option, or from "--" on, nothing is the launcher's. CLI11 hands "--" to the
/// parent command unless a positional is still open: this one stays open, because it takes no value.
void take_rest_as_program(CLI::App& command) {
  command.add_option("PROGRAM")
      ->description("Program to start, and its arguments")
      ->check([](const std::string&) { return std::string("left to the program"); });
  command.validate_positionals()->prefix_command()->allow_extras();
}

}  // namespace

void add_launch_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<launch_arguments>();
  auto& options = arguments->options;
  auto* command =
      app.add_subcommand("launch", "Start a program N times as one job, and start lost processes again");
  command->footer(
      "The first word that is no option, or the first after --, is the program; what follows is its own.");
  take_rest_as_program(*command);
  auto some_time = CLI::Range(0.001, 1e6);
  command->add_option("--nproc-per-node", options.num_processes, "Processes to start")->capture_default_str();
  command->add_option("--max-restarts", options.max_restarts, "Lost processes to start again, in all")
      ->capture_default_str();
  command->add_option("--log-dir", options.log_dir,
                      "Also write each process's output to files in this folder");
  command
      ->add_option("--drill", arguments->drills,
                   "Kill a rank when so many steps are done: RANK@STEP; repeatable")
      ->allow_extra_args(false);
  command->add_option("--master-addr", options.master_addr, "Address the job's agent listens on")
      ->capture_default_str();
  command->add_option("--master-port", options.master_port, "Its port; 0: any free one")
      ->capture_default_str();
  command->add_option("--join-timeout", arguments->join_timeout_s, "Seconds for every process to join")
      ->check(some_time)
      ->capture_default_str();
  command
      ->add_option("--suspect-after", arguments->suspect_after_s,
                   "Seconds of silence after which a process is killed")
      ->check(some_time)
      ->capture_default_str();
  command->add_flag("--json", options.json,
                    "One JSON object per line on standard output: rank 0's, and recoveries");
  command->callback(
      [arguments, command, &exit_code] { exit_code = launch(*arguments, command->remaining()); });
}

}  // namespace troupe
