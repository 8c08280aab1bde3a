// Process groups of real processes that run their own loop, without a Trainer.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <csignal>
#include <list>
#include <nlohmann/json.hpp>
#include <sstream>

#include "jobs/count_of.hpp"
#include "jobs/words.hpp"
#include "support/processes/run_process.hpp"

using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::Matches;

namespace {

using variables = std::map<std::string, std::string>;

process_result launch(int num_processes, const words& options, const variables& environment = {},
                      const std::string& program = GROUP_WORKER) {
  words command = {TROUPE_PROGRAM, "launch", "--nproc-per-node", std::to_string(num_processes),
                   "--",           program};
  command.insert(command.end(), options.begin(), options.end());
  return run_process({.command = command,
                      .environment = environment,
                      .without = {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TROUPE_JOB_SECRET"},
                      .deadline = std::chrono::minutes(2)});
}

std::string free_port() {
  int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(::bind(socket, reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  ::close(socket);
  return std::to_string(ntohs(address.sin_port));
}

/// mpirun with the environment that lets root use it on few cores.
process_result mpirun(int num_processes, const words& program) {
  words command = {TROUPE_TEST_MPIRUN,           "--oversubscribe", "--bind-to", "none", "-n",
                   std::to_string(num_processes)};
  command.insert(command.end(), program.begin(), program.end());
  return run_process({.command = command,
                      .environment = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                                      {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                                      {"OMPI_MCA_mpi_yield_when_idle", "1"},
                                      {"MASTER_PORT", free_port()}},
                      .without = {"RANK", "WORLD_SIZE", "MASTER_ADDR", "TROUPE_JOB_SECRET"},
                      .deadline = std::chrono::minutes(2)});
}

void require_built(const std::string& backend) {
  if (backend == "gloo" && !TROUPE_TEST_GLOO) SKIP("Troupe was built without gloo");
  if (backend == "mpi" && std::string(TROUPE_TEST_MPIRUN).empty()) SKIP("Troupe was built without MPI");
}

}  // namespace

TEST_CASE("five processes form overlapping groups, groups of one and slices of a mesh", "[groups]") {
  auto backend = GENERATE(std::string("ucx"), "gloo", "mpi");
  require_built(backend);
  words options = {"--scenario", "groups", "--backend", backend}, program = {GROUP_WORKER};
  program.insert(program.end(), options.begin(), options.end());
  auto result = backend == "mpi" ? mpirun(5, program) : launch(5, options);
  INFO(result.output << result.errors);
  CHECK(result.exit_code == 0);
  CHECK(count_of(result.output, ": done") == 5);
}

TEST_CASE(
    "a loop over groups survives a killed rank: the others get its number, continue, and group with its "
    "replacement",
    "[groups]") {
  auto victim = GENERATE(0, 2);
  auto backend = GENERATE(std::string("ucx"), "gloo");
  require_built(backend);
  auto result = launch(4, {"--scenario", "loop", "--victim", std::to_string(victim), "--backend", backend});
  INFO(result.output << result.errors);
  CHECK(result.exit_code == 0);
  CHECK(count_of(result.output, ": done") == 4);
  // It may have ended before the others had left the call before: then it fails for them.
  for (int rank = 0; rank < 4; ++rank)
    if (rank != victim)
      CHECK_THAT(result.output, Matches("(.|\n)*rank " + std::to_string(rank) + ": at step (9|10) lost " +
                                        std::to_string(victim) + "\n(.|\n)*"));
}

TEST_CASE("a program in which some members cancel a group's calls continues with a new group and ends",
          "[groups]") {
  auto backend = GENERATE(std::string("ucx"), "gloo", "mpi");
  require_built(backend);
  words options = {"--scenario", "given-up", "--backend", backend}, program = {GROUP_WORKER};
  program.insert(program.end(), options.begin(), options.end());
  auto result = backend == "mpi" ? mpirun(3, program) : launch(3, options);
  INFO(result.output << result.errors);
  CHECK(result.exit_code == 0);
  CHECK(count_of(result.output, ": done") == 3);
}

TEST_CASE("a rank killed before its first group joins the others' group after its restart", "[groups]") {
  auto result = launch(4, {"--scenario", "late"});
  INFO(result.output << result.errors);
  CHECK(result.exit_code == 0);
  CHECK(count_of(result.output, ": done") == 4);
}

TEST_CASE("without a launcher a lost rank ends the job on the others with its number and what to do",
          "[groups]") {
  auto port = free_port();
  std::list<background_process> processes;
  for (int rank = 0; rank < 3; ++rank)
    processes.emplace_back(run_options{
        .command = {GROUP_WORKER, "--scenario", "by-hand"},
        .environment = {{"RANK", std::to_string(rank)}, {"WORLD_SIZE", "3"}, {"MASTER_PORT", port}},
        .without = {"MASTER_ADDR", "TROUPE_JOB_SECRET"},
        .deadline = std::chrono::minutes(2)});
  int rank = 0;
  for (auto& process : processes) {
    auto result = process.wait();
    INFO("rank " << rank << "\n" << result.output << result.errors);
    if (rank++ == 1) {
      CHECK(result.signal == SIGKILL);
      continue;
    }
    CHECK(result.exit_code == 1);
    CHECK_THAT(result.output, ContainsSubstring("rank 1 "));
    CHECK_THAT(result.errors, ContainsSubstring("rank 1 was lost"));
    CHECK_THAT(result.errors, ContainsSubstring("no launcher can restart it"));
  }
}

TEST_CASE("the example of groups runs alone, as a pair and as a grid", "[groups]") {
  CHECK(launch(1, {}, {}, GROUPS_PROGRAM).output == "[0] mean 0, last of the row 0, 1 first ones\n");
  CHECK(launch(2, {}, {}, GROUPS_PROGRAM).output == "[0] mean 0.5, last of the row 1, 1 first ones\n");
  CHECK(launch(4, {}, {}, GROUPS_PROGRAM).output == "[0] mean 1.5, last of the row 1, 2 first ones\n");
}

TEST_CASE("a backend that cannot carry a group of processes says so and what to use", "[groups]") {
  auto result = launch(2, {"--scenario", "groups", "--backend", "local"});
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.errors,
             ContainsSubstring("--backend local carries calls between threads of one process"));
  auto no_gpus = launch(2, {"--backend", "nccl"}, {{"CUDA_VISIBLE_DEVICES", ""}});
  CHECK(no_gpus.exit_code == 2);
  CHECK_THAT(no_gpus.errors, ContainsSubstring("use --backend ucx for tensors in CPU memory") ||
                                 ContainsSubstring("built without NCCL"));
  auto unknown = launch(1, {"--backend", "smoke"});
  CHECK(unknown.exit_code == 2);
  CHECK_THAT(unknown.errors, ContainsSubstring("--backend must be one of ucx, local"));
}

TEST_CASE("sizes at which algorithms change are an option of the job, and it is checked first", "[groups]") {
  auto result = launch(2, {"--network-sizes", "block=1"}, {}, GROUPS_PROGRAM);
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.errors, ContainsSubstring("--network-sizes: expected block from 1024"));
  auto given = launch(2, {"--network-sizes", "whole_inputs=1K,block=4K"}, {}, GROUPS_PROGRAM);
  CHECK(given.output == "[0] mean 0.5, last of the row 1, 1 first ones\n");
}

TEST_CASE("the backend mpi is for processes that mpirun started", "[groups]") {
  require_built("mpi");
  auto result = launch(2, {"--scenario", "groups", "--backend", "mpi"});
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.errors, ContainsSubstring("start the program with `mpirun -n 2 PROGRAM`"));
  auto grid = mpirun(4, {GROUPS_PROGRAM, "--backend", "mpi"});
  INFO(grid.errors);
  CHECK(grid.output == "mean 1.5, last of the row 1, 2 first ones\n");
}

TEST_CASE("DataParallel trains over gloo and MPI as over ucx, up to rounding", "[groups]") {
  auto losses = [](const process_result& result) {
    INFO(result.errors);
    REQUIRE(result.exit_code == 0);
    std::vector<double> found;
    for (auto at = result.output.find("loss "); at != std::string::npos;
         at = result.output.find("loss ", at + 1))
      found.push_back(std::stod(result.output.substr(at + 5)));
    REQUIRE(found.size() == 4);
    return found;
  };
  auto backend = GENERATE(std::string("gloo"), "mpi");
  require_built(backend);
  auto expected = losses(launch(2, {}, {}, DATA_PARALLEL_PROGRAM));
  auto found = losses(backend == "mpi" ? mpirun(2, {DATA_PARALLEL_PROGRAM, "--backend", backend})
                                       : launch(4, {"--backend", backend}, {}, DATA_PARALLEL_PROGRAM));
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK_THAT(found[i], Catch::Matchers::WithinRel(expected[i], 1e-4));
}

TEST_CASE("TROUPE_PROFILE prints the profile of each process's calls on standard error", "[groups]") {
  auto table = launch(5, {"--scenario", "groups"}, {{"TROUPE_PROFILE", "1"}});
  INFO(table.errors);
  CHECK(table.exit_code == 0);
  CHECK_THAT(table.errors, ContainsSubstring("communication of rank 3"));
  CHECK_THAT(table.errors, ContainsSubstring("bus GB/s"));
  CHECK(count_of(table.errors, "{0,2,4}") == 3);
  CHECK(count_of(table.errors, "default") == 5);
  CHECK_THAT(launch(1, {}, {{"TROUPE_PROFILE", "2"}}).errors, ContainsSubstring("TROUPE_PROFILE"));
}

TEST_CASE("TROUPE_PROFILE=json prints the profile as JSON", "[groups]") {
  auto backend = GENERATE(std::string("ucx"), "gloo");
  require_built(backend);
  auto result = launch(5, {"--scenario", "groups", "--backend", backend}, {{"TROUPE_PROFILE", "json"}});
  INFO(result.errors);
  CHECK(result.exit_code == 0);
  std::istringstream lines(result.errors);
  int count = 0;
  for (std::string line; std::getline(lines, line);) {
    auto begin = line.find('{');
    if (begin == std::string::npos || line.find("\"communication\"") == std::string::npos) continue;
    auto object = nlohmann::json::parse(line.substr(begin));
    ++count;
    for (const auto& each : object["lines"])
      if (each["group"] == "default") {
        CHECK(each["operation"] == "all_reduce");
        CHECK(each["calls"] == 1);
        CHECK(each["bytes"] == 4000);
        CHECK(each["members"] == 5);
        if (backend != "ucx") CHECK(each["algorithm"] == backend);
        CHECK(each["algorithm_bytes_per_s"] > 0);
        CHECK(each["bus_bytes_per_s"].get<double>() ==
              Catch::Approx(each["algorithm_bytes_per_s"].get<double>() * 2 * 4 / 5));
        CHECK(each["exposed_s"] > 0);
        CHECK((each["overlap"] >= 0 && each["overlap"] <= 1));
      }
  }
  CHECK(count == 5);
}
