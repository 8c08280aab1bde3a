// Real processes, real SIGKILLs, at each named point and on every rank: the survivors live on, and the
// weights are the same bits as without the failure.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <set>

#include "jobs/job.hpp"
#include "support/temp_folder.hpp"

using namespace troupe::testing;

namespace {

constexpr int num_processes = 4;

/// Of the job without failures; computed once in a process of this test program.
const std::string& undisturbed_weights() {
  static const auto weights = [] {
    auto options = small_job();
    options.insert(options.end(), {"--stages", "4"});
    return run_local(options).weights_sha256();
  }();
  return weights;
}

/// Runs the job with a drill and checks that every rank in `killed` was lost once and nothing else changed.
void check_drill(const std::string& drill, const std::multiset<int>& killed, int processes = num_processes,
                 const std::vector<std::string>& more = {}) {
  INFO(drill);
  temp_folder folder;
  auto options = small_job();
  options.insert(options.end(), {"--snapshot-every", "2", "--disk-every", "4", "--snapshot-dir",
                                 (folder.path() / "snapshots").string(), "--fault", drill});
  options.insert(options.end(), more.begin(), more.end());
  auto outcome = run_launched(processes, options);
  INFO(outcome.process.errors);
  CHECK(outcome.weights_sha256() == undisturbed_weights());
  auto recoveries = outcome.named("recovery");
  REQUIRE(!recoveries.empty());
  CHECK(recoveries.back()["generation"] == 1 + killed.size());
  CHECK(killed.contains(recoveries.back()["rank"].get<int>()));
  std::set<int> named;
  for (const auto& recovery : recoveries)
    for (const auto& loss : recovery["losses"]) named.insert(loss["rank"].get<int>());
  CHECK(named == std::set<int>(killed.begin(), killed.end()));
}

std::string fault_at(const std::string& point, int rank, const std::string& more = "") {
  return point + "@rank=" + std::to_string(rank) + more;
}

int next_rank(int rank) { return (rank + 1) % num_processes; }

}  // namespace

TEST_CASE("any rank may be killed when it has just joined", "[kill]") {
  auto rank = GENERATE(0, 1, 2, 3);
  check_drill(fault_at("joined", rank), {rank});
}

TEST_CASE("any rank may be killed in a forward, a backward, or the optimizer's step", "[kill]") {
  auto point = GENERATE(as<std::string>(), "forward", "backward", "apply");
  auto rank = GENERATE(0, 1, 2, 3);
  check_drill(fault_at(point, rank, ",step=7"), {rank});
}

TEST_CASE("any rank may be killed in a schedule with several stages a device or backwards in two", "[kill]") {
  auto [schedule, point, rank] = GENERATE(table<std::string, std::string, int>(
      {{"interleaved_1f1b", "forward", 1}, {"zb_v", "backward", 0}, {"dualpipe_v", "backward", 1}}));
  check_drill(fault_at(point, rank, ",step=7"), {rank}, 2, {"--stages", "4", "--schedule", schedule});
}

TEST_CASE("any rank may be killed while it copies its state", "[kill]") {
  auto rank = GENERATE(0, 1, 2, 3);
  check_drill(fault_at("copy_state", rank, ",step=7"), {rank});
}

TEST_CASE("any rank may be killed while it writes its part of a snapshot", "[kill]") {
  auto rank = GENERATE(0, 1, 2, 3);
  check_drill(fault_at("part_half_written", rank), {rank});
}

TEST_CASE("the rank that writes the manifest may be killed just before", "[kill]") {
  check_drill(fault_at("before_manifest", 0), {0});
}

TEST_CASE("any rank may be killed while another one's loss is being recovered from", "[kill]") {
  auto rank = GENERATE(0, 1, 2, 3);
  check_drill(fault_at("forward", next_rank(rank), ",step=7") + ";" + fault_at("recovery", rank),
              {next_rank(rank), rank});
}

TEST_CASE("a respawned rank may be killed while it is being restored", "[kill]") {
  auto rank = GENERATE(0, 1, 2, 3);
  check_drill(fault_at("forward", rank, ",step=7") + ";" + fault_at("recovery", rank, ",incarnation=1"),
              {rank, rank});
}

TEST_CASE("any rank may stop for good: its missing heartbeats are noticed, it is killed and replaced",
          "[kill]") {
  auto rank = GENERATE(0, 1, 2, 3);
  check_drill(fault_at("forward:stop", rank, ",step=7"), {rank});
}

TEST_CASE("an actor that fails in any process is started again, and no process is lost", "[kill]") {
  auto point = GENERATE(as<std::string>(), "forward:fail", "apply:fail");
  auto rank = GENERATE(0, 1, 2, 3);
  check_drill(fault_at(point, rank, ",step=7"), {-1});
}

TEST_CASE("an actor that fails in a job of one process is started again from the copies in memory",
          "[kill]") {
  auto options = small_job();
  options.insert(options.end(), {"--devices", "4", "--fault", "backward:fail@rank=0,step=7"});
  auto outcome = run_local(options);
  CHECK(outcome.weights_sha256() == undisturbed_weights());
  REQUIRE(outcome.named("recovered").size() == 1);
  CHECK(outcome.named("recovered")[0]["generation"] == 2);
}

TEST_CASE("a loader, peer copy store or snapshot writer that fails is started again without a new generation",
          "[kill]") {
  // The samples are read by the first and the last stage, the manifest is written by rank 0.
  auto fault = GENERATE(as<std::string>(), "load:fail@rank=0,step=7", "load:fail@rank=3,step=7",
                        "keep_copy:fail@rank=1,step=6", "keep_copy:fail@rank=0,step=12",
                        "part_half_written:fail@rank=2", "before_manifest:fail@rank=0");
  INFO(fault);
  temp_folder folder;
  auto options = small_job();
  options.insert(options.end(), {"--snapshot-every", "2", "--disk-every", "4", "--snapshot-dir",
                                 (folder.path() / "snapshots").string(), "--fault", fault});
  auto outcome = run_launched(num_processes, options);
  INFO(outcome.process.errors);
  CHECK(outcome.weights_sha256() == undisturbed_weights());
  CHECK(outcome.named("recovery").empty());
  CHECK(outcome.named("recovered").empty());
  CHECK_THAT(outcome.process.errors, Catch::Matchers::ContainsSubstring("new_generation=no"));
  CHECK(std::filesystem::exists(folder.path() / "snapshots" / "step-000000000012" / "manifest.json"));
}

TEST_CASE("a rank may be lost after a peer copy store was: what it kept had been sent to it again",
          "[kill]") {
  auto options = small_job();
  options.insert(options.end(),
                 {"--snapshot-every", "2", "--fault", "keep_copy:fail@rank=2,step=4;forward@rank=1,step=9"});
  auto outcome = run_launched(num_processes, options);
  INFO(outcome.process.errors);
  CHECK(outcome.weights_sha256() == undisturbed_weights());
  REQUIRE(!outcome.named("recovery").empty());
  CHECK(outcome.named("recovery").back()["generation"] == 2);
}

TEST_CASE(
    "two ranks that hold each other's copies may be killed at once: the state is read from disk or computed "
    "again",
    "[kill]") {
  auto rank = GENERATE(0, 1, 2, 3);
  check_drill(fault_at("forward", rank, ",step=9") + ";" + fault_at("forward", next_rank(rank), ",step=9"),
              {rank, next_rank(rank)});
}

TEST_CASE("a rank killed while it leaves is not replaced, since the job's work is done", "[kill]") {
  auto rank = GENERATE(0, 1, 2, 3);
  auto options = small_job();
  options.insert(options.end(), {"--fault", fault_at("leaving", rank)});
  auto outcome = run_launched(num_processes, options);
  INFO("rank " << rank << "\n--- output\n"
               << outcome.process.output << "--- errors\n"
               << outcome.process.errors);
  CHECK(outcome.weights_sha256() == undisturbed_weights());
  CHECK_THAT(outcome.process.errors, Catch::Matchers::ContainsSubstring("rank " + std::to_string(rank)));
}

TEST_CASE(
    "the loss of two neighbours at once without a snapshot folder ends the job, and the error names the "
    "remedy",
    "[kill]") {
  run_options options;
  options.command = {
      TROUPE_PROGRAM, "launch", "--nproc-per-node",    "4",       "--drill", "1@20",           "--drill",
      "2@20",         "--",     FASHION_MNIST_PROGRAM, "--batch", "64",      "--microbatches", "4",
      "--steps",      "300"};
  options.without = {"RANK", "WORLD_SIZE"};
  options.deadline = std::chrono::minutes(4);
  SECTION("unless the user wants it to begin again") {
    options.command.insert(options.command.end(), {"--on-lost-state", "restart", "--json"});
    auto result = run_process(options);
    INFO(result.errors);
    CHECK(result.exit_code == 0);
    CHECK_THAT(result.errors, Catch::Matchers::ContainsSubstring("restarts at step 0"));
    auto reference = run_local({"--batch", "64", "--microbatches", "4", "--steps", "300", "--stages", "4"});
    CHECK_THAT(result.output, Catch::Matchers::ContainsSubstring(reference.weights_sha256()));
  }
  SECTION("with the default policy") {
    auto result = run_process(options);
    INFO(result.errors);
    CHECK(result.exit_code == 1);
    CHECK_THAT(result.errors, Catch::Matchers::ContainsSubstring("--snapshot-dir") &&
                                  Catch::Matchers::ContainsSubstring("--on-lost-state restart"));
  }
}
