#include <memory>

#include "commands.hpp"
#include "prediction.hpp"

namespace troupe {
namespace {

constexpr const char* description =
    "Say what each device of a job will hold, send and take, before anything is allocated";

void add_options(CLI::App& command, plan_request& request) {
  command.add_option("job", request.job_file, "YAML file of the job, as --config takes it")->required();
  command
      .add_option("--profile", request.profile_file, "What the model's layers cost: a file of save_profile")
      ->required();
  command.add_option("--processes", request.processes, "Processes, with the job's devices in each")
      ->capture_default_str();
  command
      .add_option("--memory", request.memory,
                  "Bytes, such as 8G, of each device: one for all, or as many as devices, with commas")
      ->delimiter(',')
      ->transform(CLI::AsSizeValue(false));
  command
      .add_option("--speed", request.speed,
                  "Of each device, relative to the one that was measured: one for all, or as many as devices")
      ->delimiter(',');
  command
      .add_option("--bandwidth", request.bytes_per_s,
                  "Bytes per second between devices (default: transfers take no time)")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--latency", request.latency_s, "Seconds that each transfer takes besides")
      ->check(CLI::NonNegativeNumber)
      ->needs(command.get_option("--bandwidth"));
  command.add_option("--write-map", request.map_file,
                     "Also write the placement into this file, for --device-map");
  command.add_flag("--json", request.json, "Print one line of JSON instead");
}

}  // namespace

void add_plan_command(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<plan_request>();
  auto* command = app.add_subcommand("plan", description);
  add_options(*command, *request);
  command->callback([request, &exit_code] {
    show(*request, predict(*request));
    exit_code = 0;
  });
}

}  // namespace troupe
