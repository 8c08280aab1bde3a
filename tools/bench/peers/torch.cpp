#include "bench/peers/torch.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "bench/processes/subprocess.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::bench {

namespace {

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

/// Starts the script with the other end of `requests` as its input.
child_process start(const std::filesystem::path& root, const std::filesystem::path& script, int threads,
                    posix::unique_fd& requests) {
  int ends[2];
  check_posix(::pipe2(ends, O_CLOEXEC), "make a pipe");
  posix::unique_fd input(ends[0]);
  requests = posix::unique_fd(ends[1]);
  auto command = torch_command(root, script, threads);
  command.insert(command.end(), {"--threads", std::to_string(threads)});
  return child_process({.program = find_program(command.front()),
                        .arguments = command,
                        .environment = environment_with({}),
                        .input = input.get()});
}

}  // namespace

nlohmann::json run_torch(const std::filesystem::path& root, const std::filesystem::path& script,
                         const nlohmann::json& options) {
  auto command = torch_command(root, script, options.at("threads"));
  for (const auto& [name, value] : options.items()) {
    command.push_back("--" + name);
    if (!value.is_boolean()) command.push_back(value.is_string() ? value.get<std::string>() : value.dump());
  }
  return run_for_object(command);
}

torch_kernels::torch_kernels(const std::filesystem::path& root, const std::filesystem::path& script,
                             int threads)
    : process_(start(root, script, threads, requests_)), answers_(process_.take_output()) {
  next_answer();  // it is ready
}

std::optional<double> torch_kernels::seconds_of(const nlohmann::json& kernel) {
  auto line = kernel.dump() + '\n';
  check_posix(::write(requests_.get(), line.data(), line.size()), "ask PyTorch");
  auto seconds = next_answer().at("seconds");
  return seconds.is_null() ? std::nullopt : std::optional(seconds.get<double>());
}

nlohmann::json torch_kernels::next_answer() {
  std::string line;
  for (char piece = 0; piece != '\n' && ::read(answers_.get(), &piece, 1) == 1;) line += piece;
  auto answer = nlohmann::json::parse(line, nullptr, false);
  if (!answer.is_object())
    throw std::runtime_error("PyTorch's process ended: " + line + read_all(process_.take_errors()));
  return answer;
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
