#include "bench/measure/measured_object.hpp"

#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include "bench/processes/run_captured.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::bench {

std::vector<std::string> torch_command(const std::filesystem::path& root, const std::filesystem::path& script,
                                       int threads) {
  std::ifstream file(script);
  std::string source(std::istreambuf_iterator<char>(file), {});
  if (!file || source.empty())
    throw bad_input("--torch-script " + script.string() +
                    ": cannot be read; it lies in tools/bench/ of Troupe's sources");
  auto environment = "OMP_NUM_THREADS=" + std::to_string(threads);
  if (root == "/") return {"env", environment, "python3", script.string()};
  return {"chroot",
          root.string(),
          "env",
          environment,
          "LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu/openblas-openmp",
          "python3",
          "-c",
          source};
}

nlohmann::json last_object(const std::vector<std::string>& command,
                           const std::vector<std::string>& environment) {
  auto seen = run_captured(command, environment);
  std::istringstream stream(seen.output);
  nlohmann::json found;
  for (std::string line; std::getline(stream, line);)
    if (auto object = nlohmann::json::parse(line, nullptr, false); object.is_object()) found = object;
  if (seen.exit_code != 0 || found.is_null())
    throw std::runtime_error("'" + command.front() + "' ended with exit code " +
                             std::to_string(seen.exit_code) + " and measured nothing: " + seen.output);
  return found;
}

nlohmann::json run_torch(const std::filesystem::path& root, const std::filesystem::path& script, int threads,
                         const std::vector<std::string>& arguments) {
  auto command = torch_command(root, script, threads);
  command.insert(command.end(), arguments.begin(), arguments.end());
  return last_object(command, {});
}

}  // namespace troupe::bench
