#include "bench/peers/mpirun.hpp"

#include <unistd.h>

#include <sstream>

#include "bench/measure/machine.hpp"
#include "bench/processes/run_captured.hpp"
#include "child_process.hpp"
#include "troupe/cluster/tcp_socket.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::bench {
namespace {

constexpr int bad_input_code = 2;

/// For the agent on rank 0.
std::string free_port() { return std::to_string(local_port(listen_on("127.0.0.1", 0))); }

std::vector<std::string> mpirun_command(int num_processes) {
  std::vector<std::string> command{
      "mpirun", "--oversubscribe", "--bind-to", "none", "-n", std::to_string(num_processes)};
  if (::geteuid() == 0) command.emplace_back("--allow-run-as-root");
  if (this_machine().cores < num_processes)
    command.insert(command.end(), {"--mca", "mpi_yield_when_idle", "1"});
  return command;
}

}  // namespace

std::optional<std::string> why_no_mpirun() {
  try {
    find_program("mpirun");
    return {};
  } catch (const bad_input&) {
    return "there is no mpirun here (Debian: openmpi-bin)";
  }
}

std::vector<nlohmann::json> run_by_mpirun(int num_processes, const std::vector<std::string>& command) {
  auto whole = mpirun_command(num_processes);
  whole.insert(whole.end(), command.begin(), command.end());
  auto seen = run_captured(whole, {"MASTER_PORT=" + free_port()});
  auto problem = "mpirun of " + command.front() + " ended with exit code " + std::to_string(seen.exit_code) +
                 ":\n" + seen.errors;
  if (seen.exit_code == bad_input_code) throw bad_input(problem);
  if (seen.exit_code != 0) throw std::runtime_error(problem);
  std::vector<nlohmann::json> found;
  std::istringstream lines(seen.output);
  for (std::string text; std::getline(lines, text);)
    if (auto line = nlohmann::json::parse(text, nullptr, false); line.is_object()) found.push_back(line);
  return found;
}

}  // namespace troupe::bench
