#include "bench/peers/torch.hpp"

#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "bench/processes/subprocess.hpp"
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
  auto blas = "LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu/openblas-openmp";
  return {"chroot", root.string(), "env", environment, blas, "python3", "-c", source};
}

nlohmann::json run_torch(const std::filesystem::path& root, const std::filesystem::path& script,
                         const nlohmann::json& options) {
  auto command = torch_command(root, script, options.at("threads"));
  for (const auto& [name, value] : options.items()) {
    command.push_back("--" + name);
    if (!value.is_boolean()) command.push_back(value.is_string() ? value.get<std::string>() : value.dump());
  }
  return run_for_object(command);
}

std::optional<double> run_torchrun(const torchrun_options& options, int num_processes) {
  auto finished = run_process(
      {"chroot", options.root.string(), "python3", options.script, "--nproc", std::to_string(num_processes)});
  for (const auto& object : json_objects_in(finished.output))
    if (object.contains("kill_to_first_step_s")) return object.at("kill_to_first_step_s").get<double>();
  std::fprintf(stderr, "troupe: torchrun in %s (exit code %d) measured no recovery: %s\n",
               options.root.c_str(), finished.exit_code, finished.output.c_str());
  return {};
}

}  // namespace troupe::bench
