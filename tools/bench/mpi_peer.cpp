#include "mpi_peer.hpp"

#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "child_process.hpp"
#include "run_captured.hpp"
#include "this_program.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::bench {
namespace {

std::vector<std::string> mpirun_command(int ranks, bool yields) {
  std::vector<std::string> command{"mpirun", "--oversubscribe",    "--bind-to", "none",
                                   "-n",     std::to_string(ranks)};
  if (::geteuid() == 0) command.emplace_back("--allow-run-as-root");
  if (yields) command.insert(command.end(), {"--mca", "mpi_yield_when_idle", "1"});
  return command;
}

bool has_mpirun() {
  try {
    find_program("mpirun");
    return true;
  } catch (const bad_input&) {
    return false;
  }
}

}  // namespace

std::optional<peer_times> open_mpi_times(const std::string& operation, int ranks, bool yields,
                                         const std::vector<std::int64_t>& sizes_bytes, int repeats) {
  auto program = std::filesystem::path(this_program()).parent_path() / "troupe_mpi_rounds";
  if (!std::filesystem::exists(program) || !has_mpirun()) return {};
  auto command = mpirun_command(ranks, yields);
  command.insert(command.end(), {program.string(), operation, std::to_string(repeats)});
  for (auto size : sizes_bytes) command.push_back(std::to_string(size));
  auto seen = run_captured(command);
  if (seen.exit_code != 0)
    throw std::runtime_error("mpirun of " + program.string() + " ended with exit code " +
                             std::to_string(seen.exit_code));
  peer_times times;
  std::istringstream lines(seen.output);
  for (std::string text; std::getline(lines, text);) {
    auto line = nlohmann::json::parse(text, nullptr, false);
    if (line.is_object()) times[line.at("bytes")] = line.at("us").get<std::vector<double>>();
  }
  return times;
}

}  // namespace troupe::bench
