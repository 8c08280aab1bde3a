#include <algorithm>
#include <iostream>
#include <memory>

#include "commands.hpp"
#include "examine.hpp"
#include "report.hpp"
#include "troupe/config/job_options.hpp"

namespace troupe {
namespace {

struct doctor_options {
  std::filesystem::path data = job_options().data;
  bool json = false;
};

doctor::findings examine_all(const std::filesystem::path& data) {
  doctor::findings all;
  for (auto& part : {doctor::examine_libraries(), doctor::examine_machine(), doctor::examine_network(),
                     doctor::examine_gpus(), doctor::examine_data(data)})
    std::ranges::copy(part, std::back_inserter(all));
  return all;
}

}  // namespace

void add_doctor_command(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand(
      "doctor", "Check libraries, machine and data, and say how to install what is missing");
  auto options = std::make_shared<doctor_options>();
  command->add_option("--data", options->data, "folder of Fashion-MNIST")->capture_default_str();
  command->add_flag("--json", options->json, "one JSON object per line");
  command->callback([options, &exit_code] {
    auto found = examine_all(options->data);
    (options->json ? doctor::print_json : doctor::print_table)(found, std::cout);
    std::cout.flush();
    exit_code = doctor::demo_can_run(found) ? 0 : 1;
  });
}

}  // namespace troupe
