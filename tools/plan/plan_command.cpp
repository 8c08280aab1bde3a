#include <limits>
#include <memory>

#include "commands.hpp"
#include "prediction.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/usage/number_text.hpp"

namespace troupe {
namespace {

constexpr const char* description =
    "Say what each device of a job will hold, send and take, before anything is allocated";

/// An option such as `--memory 8G,4G` or `--memory 8G 4G`: one value for all devices, or one for each.
template <class Value>
CLI::Option* add_per_device(CLI::App& command, const std::string& name, std::vector<Value>& values,
                            Value (*read)(std::string_view), const std::string& help) {
  auto store = [name, &values, read](const std::vector<std::string>& words) {
    try {
      for (std::string_view rest : words) {
        auto comma = rest.find(',');
        for (; comma != rest.npos; comma = rest.find(',')) {
          values.push_back(read(rest.substr(0, comma)));
          rest.remove_prefix(comma + 1);
        }
        values.push_back(read(rest));
      }
    } catch (const bad_input& problem) {
      throw bad_input(name + ": " + problem.what());
    }
  };
  return command.add_option_function<std::vector<std::string>>(name, store, help);
}

std::uint64_t memory_from(std::string_view text) { return usage::bytes_from(text); }

void add_options(CLI::App& command, plan_request& request) {
  command.add_option("job", request.job_file, "YAML file of the job, as --config takes it")->required();
  command
      .add_option("--profile", request.profile_file, "What the model's layers cost: a file of save_profile")
      ->required();
  command.add_option("--processes", request.processes, "Processes, with the job's devices in each")
      ->capture_default_str();
  add_per_device(
      command, "--memory", request.memory, memory_from,
      "Bytes of each device, such as 8G, up to 8T: one for all, or as many as devices, with commas; "
      "0: no limit")
      ->type_name("BYTES");
  add_per_device(command, "--speed", request.speed, usage::number_from,
                 "Of each device, relative to the one that was measured: one for all, or as many as devices, "
                 "with commas")
      ->type_name("FLOAT");
  command
      .add_option("--bandwidth", request.bytes_per_s,
                  "Bytes per second between devices (default: transfers take no time)")
      ->check(CLI::Range(1.0, std::numeric_limits<double>::max()));  // 0 would be no limit
  command.add_option("--latency", request.latency_s, "Seconds that each transfer takes besides")
      ->check(CLI::NonNegativeNumber)
      ->needs(command.get_option("--bandwidth"));
  command.add_option("--write-map", request.map_file,
                     "Also write the placement into this file, for --device-map");
  command.add_flag("--list", request.list,
                   "Also print every device's actions, with the memory after and in each");
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
