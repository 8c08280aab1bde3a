// Replicas in several processes that add up their gradients over a library (--backend). Where its sums are
// those of the fixed tree, as those of two always are, the job has the bits of one process. Else it has bits
// of its own, whether processes are lost or not.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <map>
#include <set>
#include <sstream>

#include "jobs/replicas/replica_layout.hpp"

using namespace troupe::testing;

namespace {

void skip_without_gloo() {
  if (!TROUPE_TEST_GLOO) SKIP("built without gloo");
}

}  // namespace

TEST_CASE("over gloo, two replicas of two stages have the bits of one process, whatever they exchange",
          "[backends]") {
  skip_without_gloo();
  for (const char* exchange : {"f32", "bf16", "f16", "top_k", "power_sgd", "average", "unclipped"})
    check_same_bits({.processes = 4, .exchange = exchange, .backend = "gloo"});
}

TEST_CASE("over gloo, a process may be lost in each kind of action, with updates deferred and without",
          "[backends]") {
  skip_without_gloo();
  for (const char* exchange : {"f32", "unclipped", "power_sgd"})
    for (const char* in : {"forward", "backward", "all_reduce", "apply"})
      check_same_bits({.processes = 4,
                       .schedule = "zb_h1",
                       .killed_in = in,
                       .exchange = exchange,
                       .lost_rank = 1,
                       .backend = "gloo"});
}

TEST_CASE("over gloo, a process adds up its replicas before, and has the bits of one process", "[backends]") {
  skip_without_gloo();
  for (const char* exchange : {"f32", "f16", "top_k", "average"})
    check_same_bits({.replicas = 4, .stages = 1, .processes = 2, .exchange = exchange, .backend = "gloo"});
  for (int lost : {0, 1})
    check_same_bits({.replicas = 4,
                     .stages = 1,
                     .processes = 2,
                     .killed_in = "all_reduce",
                     .lost_rank = lost,
                     .backend = "gloo"});
}

TEST_CASE("over gloo, a process has a group for each of its stages, on one device or two, and may be lost",
          "[backends]") {
  skip_without_gloo();
  check_same_bits({.stages = 4, .processes = 2, .backend = "gloo"});
  check_same_bits({.stages = 4, .processes = 2, .schedule = "interleaved_1f1b", .backend = "gloo"});
  for (int lost : {0, 2})
    check_same_bits({.stages = 4,
                     .processes = 3,
                     .killed_in = "all_reduce",
                     .exchange = "unclipped",
                     .lost_rank = lost,
                     .backend = "gloo"});
}

TEST_CASE("over gloo, a device that fails within a sum costs a generation, and no bit", "[backends]") {
  skip_without_gloo();
  for (const char* kind : {"fail", "stop"}) {
    INFO(kind);
    replica_layout wanted{.processes = 4, .exchange = "unclipped", .backend = "gloo"};
    auto outcome = run_layout(
        wanted, {"--snapshot-every", "2", "--fault", std::string("all_reduce:") + kind + "@rank=1,step=7"});
    INFO(outcome.process.errors);
    CHECK(outcome.weights_sha256() == expected_bits(wanted).weights_sha256);
    CHECK(outcome.named("recovery").size() == 1);
  }
}

namespace {

/// What the worker prints in four processes, by key: the values of all ranks.
std::map<std::string, std::set<std::string>> printed_by(const std::string& model, const words& more) {
  run_options running;
  running.command = {TROUPE_PROGRAM,
                     "launch",
                     "--nproc-per-node",
                     "4",
                     "--",
                     REPLICAS_WORKER,
                     "--model",
                     model,
                     "--steps",
                     "6",
                     "--microbatches",
                     "2",
                     "--batch",
                     "48",
                     "--snapshot-every",
                     "2"};
  running.command.insert(running.command.end(), more.begin(), more.end());
  auto result = run_process(running);
  INFO(result.errors);
  CHECK(result.exit_code == 0);
  std::map<std::string, std::set<std::string>> printed;
  std::istringstream lines(result.output);
  for (std::string line, launcher, rank, key, value; std::getline(lines, line);)
    if (std::istringstream(line) >> launcher >> rank >> key >> value) printed[key].insert(value);
  return printed;
}

}  // namespace

TEST_CASE("over gloo, three Trainers of one World, whose replicas lie on other processes, have their groups",
          "[backends]") {
  skip_without_gloo();
  auto over_ucx = printed_by("three_trainers", {}),
       over_gloo = printed_by("three_trainers", {"--backend", "gloo"});
  CHECK(over_gloo.size() == 6);
  for (const auto& [key, printed] : over_gloo) {
    INFO(key);
    CHECK(printed.size() == 1);
    if (!key.ends_with("-2")) CHECK(printed == over_ucx.at(key));  // two replicas have one sum
  }
}

TEST_CASE("over gloo, statistics of all replicas go by messages, and gradients by sums", "[backends]") {
  skip_without_gloo();
  words job{"--replicas", "2", "--stages", "2"};
  auto expected = printed_by("sync_batch_norm", job);
  job.insert(job.end(), {"--backend", "gloo"});
  CHECK(printed_by("sync_batch_norm", job) == expected);
  job.insert(job.end(), {"--fault", "backward@rank=3,step=4"});
  CHECK(printed_by("sync_batch_norm", job)["weights"] == expected.at("weights"));
}

TEST_CASE("over gloo, the bits of four replicas in four processes do not depend on a loss", "[backends]") {
  skip_without_gloo();
  replica_layout wanted{.replicas = 4, .stages = 1, .processes = 4, .backend = "gloo"};
  std::set<std::string> seen;
  for (const char* in : {"", "backward", "all_reduce"}) {
    wanted.killed_in = in;
    wanted.lost_rank = 2;
    auto outcome = run_layout(wanted);
    INFO(outcome.process.errors);
    CHECK(outcome.named("recovery").size() == (wanted.killed_in.empty() ? 0U : 1U));
    seen.insert(outcome.weights_sha256());
  }
  CHECK(seen.size() == 1);
}

TEST_CASE("over MPI, two replicas have the bits of one process", "[backends]") {
  std::string mpirun = TROUPE_TEST_MPIRUN;
  if (mpirun.empty()) SKIP("built without MPI");
  for (const char* exchange : {"f32", "top_k"}) {
    replica_layout wanted{.stages = 1, .processes = 2, .exchange = exchange};
    run_options running;
    running.command = {mpirun,
                       "--allow-run-as-root",
                       "--oversubscribe",
                       "-n",
                       "2",
                       GPT_PROGRAM,
                       "--json",
                       "--stages",
                       "1",
                       "--backend",
                       "mpi"};
    auto job = job_of(wanted);
    running.command.insert(running.command.end(), job.begin(), job.end());
    running.deadline = std::chrono::minutes(4);
    auto result = run_process(running);
    INFO(result.errors);
    CHECK(result.exit_code == 0);
    CHECK_THAT(result.output, Catch::Matchers::ContainsSubstring(expected_bits(wanted).weights_sha256));
  }
}

TEST_CASE("replicas whose processes name different backends are refused with both", "[backends]") {
  skip_without_gloo();
  run_options running;
  std::string job = "if [ $RANK = 0 ]; then b=gloo; else b=ucx; fi; exec ";
  job += GPT_PROGRAM;
  job += " --size tiny --steps 2 --replicas 2 --stages 1 --backend $b";
  running.command = {TROUPE_PROGRAM, "launch", "--nproc-per-node", "2", "--", "sh", "-c", job};
  auto result = run_process(running);
  CHECK(result.exit_code != 0);
  CHECK_THAT(result.errors, Catch::Matchers::ContainsSubstring("backend") &&
                                Catch::Matchers::ContainsSubstring("gloo") &&
                                Catch::Matchers::ContainsSubstring("ucx"));
}
