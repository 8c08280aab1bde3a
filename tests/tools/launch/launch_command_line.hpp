#pragma once
#include "support/processes/run_process.hpp"

namespace troupe::testing {

/// `troupe launch OPTIONS -- launch_worker ARGUMENTS`
inline run_options launch(std::vector<std::string> options,
                          const std::vector<std::string>& worker_arguments) {
  std::vector<std::string> command = {TROUPE_PROGRAM, "launch"};
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), {"--", LAUNCH_WORKER});
  command.insert(command.end(), worker_arguments.begin(), worker_arguments.end());
  return {.command = std::move(command), .environment = {}, .without = {}};
}

/// The same program with `signals` ("HUP INT") ignored from its start, as nohup does with SIGHUP.
inline run_options ignoring(const std::string& signals, run_options program) {
  auto& command = program.command;
  command.insert(command.begin(), {"sh", "-c", "trap '' " + signals + R"(; exec "$@")", "sh"});
  return program;
}

}  // namespace troupe::testing
