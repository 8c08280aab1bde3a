// Faults that are injected into running jobs, and what `troupe inspect --diagnose` says of them.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "jobs/inspected_job.hpp"
#include "support/temp_folder.hpp"

using namespace troupe::testing;
using namespace std::chrono_literals;
using json = nlohmann::json;

namespace {

constexpr int num_processes = 4;

/// A job of four processes in which one goes wrong when told to.
class faulty_job {
 public:
  faulty_job(const std::string& wrong, int rank) : rank_(rank), job_(command(wrong, rank)) {}

  int rank() const { return rank_; }
  int pid() const { return job_.pid_of(rank_); }
  void trigger() const { std::ofstream(folder_.path() / "trigger") << "now"; }

  /// Its findings, as --diagnose tells them.
  json findings() const {
    auto told = job_.inspect({"--diagnose", "--json"});
    INFO(told.output << told.errors);
    REQUIRE((told.exit_code == 0 || told.exit_code == 1));
    auto found = json::parse(told.output)["findings"];
    CHECK(found.empty() == (told.exit_code == 0));
    return found;
  }
  /// Runs on for a while, in which nothing is wrong.
  void run_well(std::chrono::milliseconds time) const {
    for (auto end = std::chrono::steady_clock::now() + time; std::chrono::steady_clock::now() < end;) {
      auto found = findings();
      INFO(found.dump(2));
      CHECK(found.empty());
      std::this_thread::sleep_for(100ms);
    }
  }
  /// Waits for a finding: it names this kind and this process, and nothing else is wrong. The seconds it
  /// took.
  double wait_for(const std::string& kind) const {
    auto begun = std::chrono::steady_clock::now();
    auto found = findings();
    for (; found.empty(); found = findings()) {
      REQUIRE(std::chrono::steady_clock::now() - begun < 60s);
      std::this_thread::sleep_for(20ms);
    }
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    INFO(found.dump(2));
    REQUIRE(found.size() == 1);
    CHECK(found[0]["kind"] == kind);
    CHECK(found[0]["rank"] == rank_);
    return took.count();
  }
  void wait_until_well() const {
    auto begun = std::chrono::steady_clock::now();
    while (!findings().empty()) {
      REQUIRE(std::chrono::steady_clock::now() - begun < 60s);
      std::this_thread::sleep_for(20ms);
    }
  }

 private:
  std::vector<std::string> command(const std::string& wrong, int rank) const {
    return {TROUPE_PROGRAM,
            "launch",
            "--nproc-per-node",
            std::to_string(num_processes),
            "--suspect-after",
            "100s",
            "--",
            FINDING_WORKER,
            "--wrong",
            wrong,
            "--wrong-rank",
            std::to_string(rank),
            "--trigger",
            (folder_.path() / "trigger").string(),
            "--inspect",
            "--stages",
            "4",
            "--microbatches",
            "4",
            "--epochs",
            "1000000",
            "--progress-timeout",
            "100s"};
  }

  temp_folder folder_;
  int rank_;
  inspected_job job_;
};

/// Rank `rank` goes wrong. Returns the seconds to its report.
double run_fault(const std::string& wrong, int rank, std::chrono::milliseconds well) {
  faulty_job job(wrong, rank);
  if (wrong == "unbalanced") return job.wait_for("unbalanced_partition");
  job.run_well(well);
  if (wrong == "stop") {
    auto pid = job.pid();
    ::kill(pid, SIGSTOP);
    auto took = job.wait_for("stopped_process");
    ::kill(pid, SIGCONT);
    job.wait_until_well();
    job.run_well(3s);
    return took;
  }
  job.trigger();
  if (wrong == "straggle") return job.wait_for("straggler");
  if (wrong == "hang") return job.wait_for("stuck_rank");
  return job.wait_for("missing_in_collective");
}

}  // namespace

TEST_CASE("a process that is stopped, and one that becomes slow, are named while the job runs") {
  faulty_job job("straggle", 2);
  job.run_well(4s);
  auto pid = job.pid();
  REQUIRE(::kill(pid, SIGSTOP) == 0);
  job.wait_for("stopped_process");
  REQUIRE(::kill(pid, SIGCONT) == 0);
  job.wait_until_well();
  job.trigger();
  job.wait_for("straggler");
}

TEST_CASE("a process that makes no further call of its group is named") { run_fault("absent", 1, 500ms); }

TEST_CASE("drawn faults are named with their process, 20 of each kind", "[.soak]") {
  auto wrong = GENERATE("straggle", "stop", "absent", "hang", "unbalanced");
  auto seed = GENERATE(range(1U, 21U));
  std::minstd_rand random(seed);
  // Rank 0 answers for the job: while it is stopped nobody does.
  auto rank = static_cast<int>(random() % (num_processes - 1)) + 1;
  auto well = std::chrono::milliseconds(wrong == std::string("absent") ? 1000 : 4000 + random() % 2000);
  INFO(wrong << ", rank " << rank << ", seed " << seed);
  auto took = run_fault(wrong, rank, well);
  std::printf("%s seed %u rank %d: reported after %.2f s\n", wrong, seed, rank, took);
  std::fflush(stdout);
}
