#include "torchrun_peer.hpp"

#include <sstream>
#include <stdexcept>

#include "run_captured.hpp"

namespace troupe::bench {

nlohmann::json run_torchrun(const torchrun_options& options, int num_processes) {
  auto seen = run_captured(
      {"chroot", options.root.string(), "python3", options.script, "--nproc", std::to_string(num_processes)});
  std::istringstream stream(seen.output);
  for (std::string line; std::getline(stream, line);)
    if (auto object = nlohmann::json::parse(line, nullptr, false);
        object.is_object() && object.contains("kill_to_first_step_s"))
      return object;
  throw std::runtime_error("torchrun in " + options.root.string() + " (exit code " +
                           std::to_string(seen.exit_code) + ") measured no recovery: " + seen.output);
}

}  // namespace troupe::bench
