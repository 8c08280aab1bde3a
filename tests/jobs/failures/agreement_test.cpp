// Processes of one job that differ: all end at once with exit code 2, and say which rank differs in
// what.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "jobs/count_of.hpp"
#include "jobs/worker_job.hpp"
#include "support/temp_folder.hpp"
#include "support/text_of.hpp"
#include "troupe/snapshot/manifest.hpp"

using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

run_options member_options(const words& command, std::map<std::string, std::string> environment = {}) {
  auto options = worker_job(1, command);
  options.environment = std::move(environment);
  return options;
}

/// The worker; where the shell's `condition` holds, with these options too.
words agreement_worker(const std::string& condition, const std::string& more, const words& options = {}) {
  auto script = condition + " && exec \"$@\" " + more + "; exec \"$@\"";
  return join({"sh", "-c", script, "sh", AGREEMENT_WORKER}, options);
}

process_result run_workers(int num_processes, const words& program, const words& launch_options = {}) {
  return run_process(worker_job(num_processes, program, launch_options));
}

/// All processes of a job by hand, each with its result.
std::vector<process_result> run_by_hand(int num_processes, const std::string& port, const words& program) {
  std::vector<std::unique_ptr<background_process>> started;
  for (int rank = 0; rank < num_processes; ++rank)
    started.push_back(std::make_unique<background_process>(
        member_options(program, {{"RANK", std::to_string(rank)},
                                 {"WORLD_SIZE", std::to_string(num_processes)},
                                 {"MASTER_PORT", port},
                                 {"TROUPE_JOB_SECRET", std::string(64, 'c')}})));
  std::vector<process_result> results;
  for (auto& each : started) results.push_back(each->wait());
  return results;
}

struct difference {
  std::string what;
  std::string field;  ///< what the error must name
};

const std::vector<difference> differences = {{"microbatches", "microbatches: "},
                                             {"loss", "loss label_smoothing: "},
                                             {"optimizer", "optimizer lr: "},
                                             {"seed", "seed: "},
                                             {"model", "parameter 0.weight: "}};

std::string weights_line_of(const process_result& result) {
  INFO(result.output << result.errors);
  REQUIRE(result.exit_code == 0);
  return result.output.substr(0, result.output.find('\n'));
}

}  // namespace

TEST_CASE("a member that differs ends the job of four at once with exit code 2, and is named with the field",
          "[agreement]") {
  auto [what, field] = GENERATE(from_range(differences));
  INFO(what);
  auto result = run_workers(4, agreement_worker("[ $RANK = 2 ]", "--differs " + what));
  INFO(result.output << result.errors);
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.errors,
             ContainsSubstring(field + "rank 2 has ") && ContainsSubstring("ranks 0, 1 and 3 have "));
  CHECK_THAT(result.errors, !ContainsSubstring("started again"));
  CHECK(count_of(result.errors, field + "rank 2 has ") == 1);
}

TEST_CASE(
    "a member that differs ends a job of two or three without a launcher, with exit code 2 in every "
    "process",
    "[agreement]") {
  auto num_processes = GENERATE(2, 3);
  auto [what, field] = GENERATE(from_range(differences));
  INFO(num_processes << " " << what);
  // Of three, the one in the middle would leave the others waiting with fewer microbatches.
  for (const auto& result : run_by_hand(num_processes, port_of_this_process(),
                                        agreement_worker("[ $RANK = 1 ]", "--differs " + what))) {
    INFO(result.output << result.errors);
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.errors, ContainsSubstring(field + "rank 1 has "));
  }
}

TEST_CASE("differing data and differing calls are named too", "[agreement]") {
  auto first = run_workers(4, agreement_worker("[ $RANK = 3 ]", "--differs data"));
  INFO(first.errors);
  CHECK(first.exit_code == 2);
  CHECK_THAT(first.errors, ContainsSubstring("samples: rank 3 has f32"));
  auto second = run_workers(4, agreement_worker("[ $RANK = 1 ]", "--differs calls"));
  INFO(second.errors);
  CHECK(second.exit_code == 2);
  CHECK_THAT(second.errors, ContainsSubstring("call: rank 1 has evaluate"));
}

TEST_CASE("a process restarted with other options is refused", "[agreement]") {
  auto result = run_workers(4, agreement_worker("[ $RANK = 2 ] && [ \"$TROUPE_INCARNATION\" = 1 ]",
                                                "--differs seed", {"--fault", "forward:kill@rank=2,step=7"}));
  INFO(result.output << result.errors);
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.errors, ContainsSubstring("seed: rank 2 has 2, ranks 0, 1 and 3 have 1"));
}

TEST_CASE("a job that continues from snapshots of another numeric class is refused, and names both",
          "[agreement]") {
  temp_folder folder;
  words job = {AGREEMENT_WORKER, "--devices", "2", "--snapshot-dir", folder.path() / "snapshots",
               "--steps",        "8"};
  weights_line_of(run_process(member_options(job)));
  auto file = folder.path() / "snapshots/step-000000000008/manifest.json";
  auto written = troupe::snapshot::manifest_from_text(text_of(file));
  auto of_another_class = written;
  of_another_class.numeric_class = "onednn-2.6.3-avx2";
  std::ofstream(file) << troupe::snapshot::manifest_text(of_another_class);
  auto refused = run_process(member_options(join(job, {"--resume"})));
  INFO(refused.errors);
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.errors, ContainsSubstring("step 8") && ContainsSubstring("onednn-2.6.3-avx2") &&
                                 ContainsSubstring("have cpu-1"));
  std::ofstream(file) << troupe::snapshot::manifest_text(written);
  weights_line_of(run_process(member_options(join(job, {"--resume"}))));
}

TEST_CASE("a job may continue with another number of threads", "[agreement]") {
  temp_folder folder;
  words job = {AGREEMENT_WORKER, "--devices", "2", "--snapshot-dir", folder.path() / "snapshots"};
  weights_line_of(run_process(member_options(join(job, {"--steps", "8"}))));
  auto continued = weights_line_of(
      run_process(member_options(join(job, {"--steps", "16", "--resume", "--threads", "2"}))));
  words whole = {AGREEMENT_WORKER, "--devices", "2", "--steps", "16"};
  CHECK(continued == weights_line_of(run_process(member_options(whole))));
}

TEST_CASE("without a launcher a later job at the same address never gets the results of an earlier one",
          "[agreement]") {
  temp_folder folder;
  auto port = port_of_this_process();
  auto run = [&](const std::string& steps, const words& more) {
    auto program =
        join({AGREEMENT_WORKER, "--snapshot-dir", folder.path() / "snapshots", "--steps", steps}, more);
    return weights_line_of(run_by_hand(2, port, program)[0]);
  };
  auto early = run("8", {});
  auto later = run("16", {"--resume"});
  CHECK(later != early);
  temp_folder other;
  CHECK(later ==
        weights_line_of(run_by_hand(
            2, port, {AGREEMENT_WORKER, "--snapshot-dir", other.path() / "snapshots", "--steps", "16"})[0]));
}
