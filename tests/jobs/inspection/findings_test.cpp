// Faults that are injected into running jobs, and what `troupe inspect --diagnose` says of them.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <thread>

#include "jobs/inspection/inspected_job.hpp"
#include "support/temp_folder.hpp"

using namespace troupe::testing;
using namespace std::chrono_literals;
using json = nlohmann::json;

namespace {

constexpr int num_processes = 4;

double unix_now_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Unix time at which the handler began that this actor of this rank runs, as `inspect --json` tells.
double begin_of_handler(const json& told, int rank, const std::string& actor) {
  for (const auto& process : told["processes"]["processes"])
    for (const auto& one : told["actors"]["actors"])
      if (process["rank"] == rank && one["id"] == actor)
        return process["reported_ms"].get<double>() / 1000 - one["handler_running_s"].get<double>();
  throw std::runtime_error("[begin_of_handler] " + actor + " is not shown");
}

/// A job of four processes in which one goes wrong when told to.
class faulty_job {
 public:
  faulty_job(const std::string& wrong, int rank, const std::vector<std::string>& options = {})
      : rank_(rank), job_(command(wrong, rank, options)) {}

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
  /// Runs on to this step, up to which nothing is wrong. The step is asked for last: findings of a later step
  /// are not taken for those of an earlier one.
  void run_well_to(std::uint64_t step) const {
    for (auto end = std::chrono::steady_clock::now() + 120s;; std::this_thread::sleep_for(100ms)) {
      auto found = findings();
      if (told()["job"]["step"] >= step) return;
      INFO(found.dump(2));
      CHECK(found.empty());
      REQUIRE(std::chrono::steady_clock::now() < end);
    }
  }
  /// Waits for a finding: it names this kind and this process, and this actor if one is given, and nothing
  /// else is wrong. The seconds it took.
  double wait_for(const std::string& kind, const std::string& actor = {}) const {
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
    if (!actor.empty()) CHECK(found[0]["actor"] == actor);
    return took.count();
  }
  /// Unix time at which the handler began that this actor runs: the same in two answers in a row, as the
  /// parts of one answer may come from two reports of the process.
  double handler_begun_s(const std::string& actor) const {
    double begun = 0, before = -1;
    while (std::abs(begun - before) > 0.05) {
      before = begun;
      begun = begin_of_handler(told(), rank_, actor);
    }
    return begun;
  }
  void wait_until_well() const {
    auto begun = std::chrono::steady_clock::now();
    while (!findings().empty()) {
      REQUIRE(std::chrono::steady_clock::now() - begun < 60s);
      std::this_thread::sleep_for(20ms);
    }
  }

 private:
  json told() const { return json::parse(job_.inspect({"--json"}).output); }
  std::vector<std::string> command(const std::string& wrong, int rank,
                                   const std::vector<std::string>& options) const {
    std::vector<std::string> made = {TROUPE_PROGRAM,
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
    made.insert(made.end(), options.begin(), options.end());
    return made;
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

/// From this step on a handler of the peer copy store of rank `rank` does not return. The copies of further
/// steps wait in its mailbox, until no step is granted any more. Returns the seconds from the beginning of
/// that handler to its report.
double run_hung_store(int rank, std::uint64_t step) {
  auto where = "@rank=" + std::to_string(rank) + ",step=" + std::to_string(step);
  faulty_job job("nothing", rank, {"--snapshot-every", "1", "--fault", "keep_copy:hang" + where});
  auto store = std::to_string(rank) + "#0/peer_copy_store/0";
  job.run_well_to(step);
  job.wait_for("growing_mailbox", store);
  auto reported = unix_now_s();
  return reported - job.handler_begun_s(store);
}

}  // namespace

TEST_CASE("a process that is stopped, and one that becomes slow, are named while the job runs",
          "[findings][timed]") {
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

TEST_CASE("a process that makes no further call of its group is named", "[findings][timed]") {
  run_fault("absent", 1, 500ms);
}

TEST_CASE("an actor that does not take its messages is named, while the job waits for it",
          "[findings][timed]") {
  run_hung_store(3, 40);
}

TEST_CASE("a healthy job has no finding while other programs take its cores", "[.soak][findings]") {
  std::vector<std::jthread> loops(std::thread::hardware_concurrency());
  for (auto& one : loops)
    one = std::jthread([](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
      }
    });
  faulty_job("nothing", -1).run_well(60s);
}

TEST_CASE("drawn faults are named with their process, 20 of each kind", "[.soak][findings]") {
  std::string wrong = GENERATE("straggle", "stop", "absent", "hang", "unbalanced", "store");
  auto seed = GENERATE(range(1U, 21U));
  std::minstd_rand random(seed);
  // Rank 0 answers for the job: while it is stopped nobody does.
  auto rank = static_cast<int>(random() % (num_processes - 1)) + 1;
  auto well = std::chrono::milliseconds(wrong == "absent" ? 1000 : 4000 + random() % 2000);
  // One kind alone: --section KIND
  DYNAMIC_SECTION(wrong) {
    INFO("rank " << rank << ", seed " << seed);
    auto took = wrong == "store" ? run_hung_store(rank, 50 + random() % 100) : run_fault(wrong, rank, well);
    std::printf("%s seed %u rank %d: reported after %.2f s\n", wrong.c_str(), seed, rank, took);
    std::fflush(stdout);
  }
}
