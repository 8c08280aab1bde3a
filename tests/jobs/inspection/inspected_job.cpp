#include "jobs/inspection/inspected_job.hpp"

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

namespace troupe::testing {

inspected_job::inspected_job(std::vector<std::string> command)
    : process_({.command = std::move(command), .environment = {}, .without = {"RANK", "WORLD_SIZE"}}) {
  auto line = process_.wait_for_line("http://");
  auto at = line.find("http://");
  url_ = line.substr(at, line.find('"', at) - at);  // with --json it is a string
}

process_result inspected_job::inspect(std::vector<std::string> options) const {
  std::vector<std::string> command = {TROUPE_PROGRAM, "inspect", url_};
  command.insert(command.end(), options.begin(), options.end());
  return run_process({.command = command, .environment = {}, .without = {}});
}

int inspected_job::pid_of(int rank) const {
  auto told = nlohmann::json::parse(inspect({"--json"}).output);
  for (const auto& process : told["processes"]["processes"])
    if (process["rank"] == rank) return process["pid"];
  throw std::runtime_error("[inspected_job] rank " + std::to_string(rank) + " has not reported");
}

}  // namespace troupe::testing
