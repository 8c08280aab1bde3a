#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "commands.hpp"
#include "launcher.hpp"
#include "troupe/cluster/agent.hpp"
#include "troupe/config/duration_text.hpp"
#include "troupe/config/environment/events_environment.hpp"
#include "troupe/config/environment/other_launchers.hpp"
#include "troupe/config/stop_signals.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/usage/usage_problem.hpp"

namespace troupe {
namespace {

struct launch_arguments {
  launch_options options;
  std::vector<std::string> drills;
  std::string stop_signals;
};

/// An option such as `--grace 20s` or `--grace 20`. Its default is printed in a form that can be read back.
void add_time(CLI::App& command, const std::string& name, std::chrono::milliseconds& value,
              const std::string& help) {
  auto store = [name, &value](const std::string& text) {
    try {
      value = config::duration_from(text);
    } catch (const bad_input& problem) {
      throw bad_input(name + ": " + problem.what());
    }
  };
  command.add_option_function<std::string>(name, store, help)
      ->type_name("TIME")
      ->default_str(config::to_text(value));
}

/// For options of torchrun and mpirun. Empty: it is none of theirs.
std::string advice_for(const std::string& option) {
  auto name = option.substr(0, option.find('='));
  std::ranges::replace(name, '_', '-');
  auto is = [&](auto... names) { return ((name == names) || ...); };
  if (is("-n", "-np", "--np", "--nproc-per-node")) return "The number of processes is --nproc-per-node N";
  if (is("--standalone")) return "Leave it out: a job is on this host, at a free port, unless told otherwise";
  if (is("--nnodes", "--node-rank", "-N", "--hostfile", "--host", "-H") || name.starts_with("--rdzv-"))
    return "It starts processes on its own host only; for several hosts start each process with RANK, "
           "WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT, by hand, srun or mpirun";
  if (is("--tee", "-t", "--redirects", "-r")) return "--log-dir FOLDER keeps each process's output";
  if (is("-m", "--module", "--no-python")) return "Programs are executables: give its path";
  return {};
}

/// torchrun takes words for the number of processes.
std::string check_number_of_processes(const std::string& text) {
  if (text != "auto" && text != "gpu" && text != "cpu") return {};
  return "expected a number, got '" + text +
         "'. Give one process for each GPU, or as many as have cores for their threads: `troupe doctor` "
         "shows both; on CPUs --nproc-per-node $(nproc) gives each process one core";
}

/// The next files that are opened would take the numbers of standard descriptors that are closed. A write to
/// the one that takes the place of standard output fails, as one to a closed descriptor does.
void fill_closed_descriptors() {
  for (auto [fd, mode] : {std::pair{0, O_RDONLY}, {1, O_RDONLY}, {2, O_WRONLY}})
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF && ::open("/dev/null", mode) != fd)
      throw system_failure("open /dev/null", errno);
}

int launch(launch_arguments arguments, const CLI::App& parsed, std::vector<std::string> command) {
  if (!command.empty() && command.front() == "--")
    command.erase(command.begin());
  else if (!command.empty() && command.front().starts_with("-")) {
    auto guess = usage::did_you_mean(parsed, command.front());
    auto advice = advice_for(command.front());
    if (!advice.empty()) guess = ". " + advice + '.';
    throw bad_input("troupe launch has no option '" + command.front() + "'" + (guess.empty() ? "." : guess) +
                    " See `troupe launch --help`; the program's options come after the program");
  }
  auto& options = arguments.options;
  if (parsed.count("--log-dir") > 0 && options.log_dir.empty())
    throw bad_input("--log-dir: expected a folder for the log files, got ''. Leave it out to keep none");
  fill_closed_descriptors();
  options.command = std::move(command);
  options.events_per_thread = config::read_events_environment(process_environment()).events_per_thread;
  options.more_signals = config::stop_signals_from(arguments.stop_signals);
  for (const auto& text : arguments.drills) options.drills.push_back(parse_drill(text));
  if (auto warning = config::warning_of_several_launchers(process_environment()); !warning.empty())
    std::fprintf(stderr, "troupe: %s\n", warning.c_str());
  // Until this process has ended: a request to stop that is sent several times must not kill it once the job
  // has stopped.
  config::block_stop_signals(options.more_signals);
  return launcher(std::move(options)).run();
}

/// All words from the first one that is no option, or after "--", belong to the program. CLI11 passes "--" to
/// the parent command unless a positional is still open: this one stays open, because it takes no value.
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
      app.add_subcommand("launch", "Start a program N times as one job, and restart lost processes");
  command->footer(
      "The first word that is no option, or the first after --, is the program; what follows is its own.");
  take_rest_as_program(*command);
  command->add_option("--nproc-per-node", options.num_processes, "Processes to start")
      ->capture_default_str()
      ->check(CLI::Validator(check_number_of_processes, ""));
  command
      ->add_option("--max-restarts", options.max_restarts,
                   "Restarts of lost processes within --restart-window, all ranks together")
      ->capture_default_str();
  add_time(*command, "--restart-window", options.restart_window,
           "Earlier restarts do not count against --max-restarts");
  command->add_option(
      "--log-dir", options.log_dir,
      "Also write each process's output, and the last events of lost ones, to files in this folder");
  command
      ->add_option("--drill", arguments->drills,
                   "Kill rank RANK when STEP steps are done, at least 1: RANK@STEP; repeatable")
      ->allow_extra_args(false);
  command->add_option("--master-addr", options.master_addr, "Address the job's agent listens on")
      ->capture_default_str();
  command->add_option("--master-port", options.master_port, "Port of the agent; 0: any free port")
      ->capture_default_str()
      ->check(CLI::Range(0, 65535).description(""));
  add_time(*command, "--join-timeout", options.join_timeout, "Time for all processes to join");
  add_time(*command, "--suspect-after", options.suspect_after,
           "Kill a process that sends no heartbeat for this time, at least " +
               config::to_text(cluster::least_suspect_after));
  add_time(*command, "--grace", options.grace,
           "Time for the job to save its state and end after SIGTERM, SIGINT or SIGHUP; then it is killed");
  command->add_option(
      "--stop-signals", arguments->stop_signals,
      "Further signals that stop the job as SIGTERM does: USR1, USR2, XCPU, several with commas");
  command->add_flag(
      "--json", options.json,
      "Standard output: that of rank 0, and a JSON object per recovery; all else: standard error");
  command->callback(
      [arguments, command, &exit_code] { exit_code = launch(*arguments, *command, command->remaining()); });
}

}  // namespace troupe
