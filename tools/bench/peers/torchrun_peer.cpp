#include "bench/peers/torchrun_peer.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bench/processes/run_captured.hpp"

namespace troupe::bench {

std::optional<double> run_torchrun(const torchrun_options& options, int num_processes) {
  auto seen = run_captured(
      {"chroot", options.root.string(), "python3", options.script, "--nproc", std::to_string(num_processes)});
  std::istringstream stream(seen.output);
  for (std::string line; std::getline(stream, line);)
    if (auto object = nlohmann::json::parse(line, nullptr, false);
        object.is_object() && object.contains("kill_to_first_step_s"))
      return object.at("kill_to_first_step_s").get<double>();
  std::fprintf(stderr, "troupe: torchrun in %s (exit code %d) measured no recovery: %s\n",
               options.root.c_str(), seen.exit_code, seen.output.c_str());
  return {};
}

}  // namespace troupe::bench
