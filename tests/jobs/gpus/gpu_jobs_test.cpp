// Jobs whose devices are GPUs keep what jobs on CPUs promise: the same bits with any schedule and on any
// number of processes, whatever is lost. The GPUs are emulated: two in each process, which the job's devices
// take in turn.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdlib>
#include <random>
#include <string>

#include "jobs/replicas/replica_layout.hpp"
#include "jobs/worker_job.hpp"
#include "support/temp_folder.hpp"

using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

words with(const words& more) { return join({"--steps", "6", "--batch", "32", "--microbatches", "4"}, more); }

/// Of one stage on one GPU.
const job_bits& expected() {
  static const auto known = bits_of(run_local(with({"--stages", "1"})));
  return known;
}

void check_as_expected(const job_outcome& outcome) {
  INFO(outcome.process.errors);
  CHECK(bits_of(outcome) == expected());
}

/// `lost`: RANK:CALLS, after how many of its calls the GPUs of a rank fail for good; empty: never.
process_result run_command(words command, const std::string& lost = {}) {
  run_options running{.command = std::move(command),
                      .environment = {{"TROUPE_EMULATED_GPUS", NUM_JOB_GPUS}},
                      .without = {"RANK", "WORLD_SIZE"}};
  if (!lost.empty()) running.environment["TROUPE_EMULATED_LOSS"] = lost;
  return run_process(running);
}

/// How a numeric class with a GPU begins.
const std::string of_gpus = "cpu-1+cuda-";

}  // namespace

namespace {

struct form {
  std::string schedule;
  int stages, devices, processes;
};

void check_form(const form& wanted) {
  INFO(wanted.schedule << ", " << wanted.stages << " stages, " << wanted.devices << " devices in each of "
                       << wanted.processes << " processes");
  auto options = with({"--schedule", wanted.schedule, "--stages", std::to_string(wanted.stages), "--devices",
                       std::to_string(wanted.devices)});
  check_as_expected(wanted.processes == 1 ? run_local(options) : run_launched(wanted.processes, options));
}

void check_replicas(const std::string& exchange, const std::string& killed_in) {
  check_same_bits({.processes = 2, .killed_in = killed_in, .exchange = exchange, .lost_rank = 1});
}

}  // namespace

TEST_CASE("on GPUs, schedules give the bits of one stage, in one process and in several") {
  for (const auto& each : {form{"gpipe", 4, 4, 1}, form{"zb_h1", 4, 1, 4}, form{"zb_v", 4, 1, 2}})
    check_form(each);
}

TEST_CASE("on GPUs, every schedule gives the bits of one stage on any devices", "[.soak]") {
  for (int processes : {1, 2, 4})
    for (const char* schedule : {"gpipe", "1f1b", "zb_h1", "zb_h2"})
      for (int stages : {2, 3, 4})
        if (stages >= processes) check_form({schedule, stages, processes == 1 ? stages : 1, processes});
  for (int processes : {1, 2})
    for (const char* schedule : {"interleaved_1f1b", "zb_v", "dualpipe_v", "looped_bfs"})
      check_form({schedule, 4, processes == 1 ? 2 : 1, processes});
}

TEST_CASE("on GPUs, replicas have the bits of one process, whatever they exchange and lose") {
  check_replicas("top_k", "all_reduce");
}

TEST_CASE("on GPUs, replicas that exchange anything may be lost in any action", "[.soak]") {
  for (const char* exchange : {"f32", "bf16", "f16", "top_k", "power_sgd", "average", "unclipped"})
    for (const char* in : {"forward", "backward", "all_reduce", "apply"}) check_replicas(exchange, in);
  check_replicas("f16", "reduce");
  check_same_bits({.replicas = 4, .stages = 1, .processes = 3});
  check_same_bits({.replicas = 2, .stages = 2, .processes = 4, .schedule = "zb_h1", .exchange = "bf16"});
}

namespace {

/// A variable in the environment of the jobs that are started while it lives.
class job_variable {
 public:
  job_variable(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
  ~job_variable() { ::unsetenv(name_); }
  job_variable(const job_variable&) = delete;
  job_variable& operator=(const job_variable&) = delete;

 private:
  const char* name_;
};

/// Over NCCL, whose members in several processes leave their calls to each other in files.
void check_over_nccl(replica_layout wanted) {
  temp_folder folder;
  job_variable files("TROUPE_FAKE_NCCL_FOLDER", folder.path().string());
  wanted.backend = "nccl";
  check_same_bits(wanted);
}

/// A job with drawn layout, schedule, order of streams and kill. Its GPUs run what is queued at drawn
/// moments.
void check_drawn(int seed) {
  std::minstd_rand draws(static_cast<unsigned>(seed) + 1);
  auto one_of = [&](const words& all) { return all[draws() % all.size()]; };
  auto processes = 1 + static_cast<int>(draws() % 3);
  auto stages = std::max(processes, 1 + static_cast<int>(draws() % 4));
  auto options = with({"--schedule", one_of({"gpipe", "1f1b", "zb_h1", "zb_h2"}), "--stages",
                       std::to_string(stages), "--snapshot-every", "1"});
  if (processes == 1) options = join(options, {"--devices", std::to_string(stages)});
  auto streams = one_of({"early", "late", "drawn:" + std::to_string(seed)});
  bool kills = processes > 1 && draws() % 4 > 0;
  if (kills) {
    auto point = one_of({"forward", "backward", "apply", "copy_state"});
    auto rank = std::to_string(draws() % static_cast<unsigned>(processes));
    options =
        join(options, {"--fault", point + "@rank=" + rank + ",step=" + std::to_string(1 + draws() % 5)});
  }
  std::string shown;
  for (const auto& word : options) shown += " " + word;
  INFO("seed " << seed << ", streams " << streams << ", " << processes << " processes:" << shown);
  job_variable order("TROUPE_EMULATED_STREAMS", streams);  // late, early or drawn:SEED
  auto outcome = processes == 1 ? run_local(options) : run_launched(processes, options);
  CHECK(outcome.weights_sha256() == expected().weights_sha256);
  CHECK(outcome.named("recovery").size() == (kills ? 1U : 0U));
}

}  // namespace

TEST_CASE("on GPUs, replicas that own shards have the bits of one process, in any order of streams") {
  job_variable order("TROUPE_EMULATED_STREAMS", "late");
  check_same_bits(
      {.processes = 2, .schedule = "looped_bfs", .killed_in = "unshard", .lost_rank = 1, .shard = "full"});
}

TEST_CASE("on GPUs, replicas that own shards may be lost in any action, in any order of streams", "[.soak]") {
  for (const char* streams : {"early", "late", "drawn:11"})
    for (const char* shard : {"optimizer", "grad", "full"})
      for (const char* in : {"unshard", "forward", "backward", "all_reduce", "apply", "copy_state"})
        for (const char* exchange : {"f32", "unclipped"}) {
          INFO(streams);
          job_variable order("TROUPE_EMULATED_STREAMS", streams);
          check_same_bits({.replicas = 2,
                           .stages = 3,
                           .processes = 3,
                           .killed_in = in,
                           .exchange = exchange,
                           .lost_rank = 2,
                           .shard = shard});
        }
}

TEST_CASE("over NCCL, replicas in two processes have the bits of one, also if either is lost") {
  if (!HAS_EMULATED_NCCL) SKIP("NCCL's header was not found");
  check_over_nccl({.processes = 2});
  check_over_nccl({.processes = 2, .killed_in = "all_reduce", .lost_rank = 1});
}

TEST_CASE("over NCCL, replicas may be lost in any action, whatever they exchange", "[.soak]") {
  if (!HAS_EMULATED_NCCL) SKIP("NCCL's header was not found");
  for (const char* exchange : {"f32", "bf16", "f16", "top_k", "power_sgd", "average", "unclipped"})
    for (const char* in : {"forward", "backward", "all_reduce", "apply"})
      check_over_nccl({.processes = 2, .killed_in = in, .exchange = exchange, .lost_rank = 1});
}

TEST_CASE("on GPUs, no order of streams and no kill in any of them changes a bit") {
  for (int seed : {0, 1, 2}) check_drawn(seed);
}

TEST_CASE("on GPUs, no order of streams and no kill in any of them changes a bit, in 300 drawn jobs",
          "[.soak]") {
  for (int seed = 3; seed < 303; ++seed) check_drawn(seed);
}

TEST_CASE("on GPUs, any rank may be killed, and goes on from copies of its state in other processes") {
  auto [point, rank] = GENERATE(table<std::string, int>({{"forward", 0}, {"copy_state", 1}}));
  auto outcome = run_launched(2, with({"--stages", "2", "--snapshot-every", "2", "--fault",
                                       point + "@rank=" + std::to_string(rank) + ",step=3"}));
  INFO(outcome.process.errors);
  CHECK(outcome.weights_sha256() == expected().weights_sha256);
  CHECK(outcome.named("recovery").size() == 1);
}

TEST_CASE("on GPUs, a loss before the first copy of the state begins the training again") {
  job_variable late("TROUPE_EMULATED_STREAMS", "late");
  for (int i = 0; i < 4; ++i) {
    auto outcome = run_launched(2, with({"--schedule", "zb_h1", "--stages", "2", "--snapshot-every", "1",
                                         "--fault", "forward@rank=0,step=1"}));
    INFO(outcome.process.errors);
    CHECK(outcome.weights_sha256() == expected().weights_sha256);
    CHECK(outcome.named("recovery").size() == 1);
  }
}

TEST_CASE("on GPUs, a copy of the state that hangs costs its process, also that of the last step") {
  auto outcome = run_launched(2, with({"--stages", "2", "--snapshot-every", "1", "--progress-timeout", "3s",
                                       "--fault", "copy_state:hang@rank=1,step=5"}));
  INFO(outcome.process.errors);
  CHECK(outcome.weights_sha256() == expected().weights_sha256);
  CHECK(outcome.named("recovery").size() == 1);
}

TEST_CASE("on GPUs, an actor that fails is started again on its GPU") {
  auto outcome = run_local(with({"--devices", "2", "--fault", "backward:fail@rank=0,step=3"}));
  INFO(outcome.process.errors);
  CHECK(outcome.weights_sha256() == expected().weights_sha256);
  CHECK(outcome.named("recovered").size() == 1);
}

TEST_CASE("a GPU that fails for good costs its process, which another one replaces") {
  auto program = join(
      {FASHION_MNIST_PROGRAM, "--device", JOB_DEVICE, "--stages", "2", "--snapshot-every", "2"}, with({}));
  auto rank = GENERATE(0, 1);
  auto result = run_command(join({TROUPE_PROGRAM, "launch", "--nproc-per-node", "2", "--"}, program),
                            std::to_string(rank) + ":3000");
  INFO(result.errors);
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.output, ContainsSubstring(expected().weights_sha256));
  CHECK_THAT(result.errors, ContainsSubstring("this process cannot use its GPUs") &&
                                ContainsSubstring("rank " + std::to_string(rank) + " was killed by SIGKILL"));
  auto alone = run_command(join(program, {"--devices", "2"}), "0:3000");
  CHECK(alone.exit_code == 1);
  CHECK_THAT(alone.errors, ContainsSubstring("`troupe launch` would replace this process"));
}

TEST_CASE("what devices hold on GPUs is told from what they hold on the CPU, predicted, and may be limited") {
  temp_folder folder;
  auto profile = (folder.path() / "gpt.json").string();
  words job = {"--size",         "tiny", "--steps",  "3", "--batch",   "8",
               "--microbatches", "4",    "--stages", "2", "--devices", "2"};
  run_local(join(job, {"--write-profile", profile}), example::gpt);
  auto outcome = run_local(join(job, {"--memory", profile}), example::gpt);
  auto told = outcome.named("memory");
  REQUIRE(told.size() == 1);
  INFO(told[0].dump(1));
  std::size_t most = 0;
  for (const auto& device : told[0]["devices"]) {
    CHECK(device["place"] == "cuda:" + device["device"].dump());
    CHECK(device["ratio"] > 0.95);
    CHECK(device["ratio"] < 1.05);
    CHECK(device["peak_by_use"]["messages"] == 0);
    CHECK(device["on_host"]["peak_by_use"]["messages"] > 0);
    CHECK(device["on_host"]["current_by_use"]["parameters"] == 0);
    most = std::max(most, device["peak_bytes"].get<std::size_t>());
  }
  auto limited = run_command(
      join({GPT_PROGRAM, "--device", JOB_DEVICE, "--memory-limit", std::to_string(most / 2)}, job));
  CHECK(limited.exit_code == 2);
  CHECK_THAT(limited.errors, ContainsSubstring("expected at most " + std::to_string(most / 2) +
                                               " bytes in the memory of cuda:"));
}

TEST_CASE("a job on CPUs and GPUs has the same bits in one process and in two") {
  words mixed = {"--device", "cpu,cuda:0", "--stages", "2"};
  auto one = run_local(with(join(mixed, {"--devices", "2"})));
  auto two = run_launched(2, with(mixed));
  INFO(two.process.errors);
  CHECK(bits_of(one) == bits_of(two));
}

TEST_CASE("each device of a process gets a GPU of its own, which must be there") {
  auto own = run_local(with({"--device", "cuda", "--devices", "2", "--stages", "2"}));
  check_as_expected(own);
  auto result = run_command({FASHION_MNIST_PROGRAM, "--device", "cuda", "--devices", "3", "--stages", "3"});
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.errors, ContainsSubstring("--device cuda") && ContainsSubstring("cuda:2") &&
                                ContainsSubstring("--device cuda:0 to let devices share a GPU"));
  result = run_command({TROUPE_PROGRAM, "launch", "--nproc-per-node", "2", "--", FASHION_MNIST_PROGRAM,
                        "--device", "cuda", "--devices", "2", "--stages", "4"});
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.errors, ContainsSubstring("cuda:2") && ContainsSubstring("(here 1 * 2)"));
}

TEST_CASE("a snapshot of GPUs goes on with other stages and processes, and on CPUs is refused") {
  temp_folder folder;
  auto in_folder = [&](int steps, const words& more) {
    return join({"--steps", std::to_string(steps), "--batch", "32", "--microbatches", "4", "--snapshot-dir",
                 (folder.path() / "snapshots").string(), "--disk-every", "2"},
                more);
  };
  run_launched(2, in_folder(4, {"--stages", "2"}));
  auto refused =
      run_command(join(join({FASHION_MNIST_PROGRAM}, in_folder(6, {"--resume"})), {"--device", "cpu"}));
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.errors, ContainsSubstring(of_gpus) && ContainsSubstring("these processes have cpu-1:"));
  auto resumed = run_local(in_folder(6, {"--resume", "--stages", "3", "--devices", "3"}));
  CHECK(resumed.weights_sha256() == expected().weights_sha256);
}

TEST_CASE("processes that compute with different classes are refused, with both named") {
  std::string program = FASHION_MNIST_PROGRAM;
  auto line =
      "exec " + program + " --steps 2 --stages 2 --device $(test $RANK = 0 && echo cpu || echo cuda:0)";
  auto result = run_command({TROUPE_PROGRAM, "launch", "--nproc-per-node", "2", "--", "/bin/sh", "-c", line});
  CHECK(result.exit_code != 0);
  CHECK_THAT(result.errors, ContainsSubstring("'cpu-1'") && ContainsSubstring("'" + of_gpus));
}

namespace {

printed_values run_worker(const char* program, int num_processes, const words& options) {
  auto job = worker_job(num_processes, join({program, "--device", JOB_DEVICE}, options));
  job.environment = {{"TROUPE_EMULATED_GPUS", NUM_JOB_GPUS}};
  job.deadline = std::chrono::minutes(4);
  auto result = run_process(job);
  INFO(result.output << result.errors);
  REQUIRE(result.exit_code == 0);
  return printed_by(result);
}

}  // namespace

TEST_CASE(
    "on GPUs, modules that add up over replicas and batches of unequal counts have the same bits anywhere") {
  auto model = GENERATE(as<std::string>(), "sync_batch_norm", "partly_labelled");
  words job = {"--model",        model, "--steps",    "4", "--batch",  "48",
               "--microbatches", "2",   "--replicas", "2", "--stages", "2"};
  auto one = run_worker(REPLICAS_WORKER, 1, join(job, {"--devices", "4"}));
  auto two = run_worker(REPLICAS_WORKER, 2, job);
  CHECK(one.values.size() > 4);
  CHECK(one.values == two.values);
}

TEST_CASE("on GPUs, gathered weights, predictions and files are those of one process, whatever is lost") {
  words job = {"--steps", "8", "--microbatches", "4", "--stages", "4"};
  auto one = run_worker(TRAINER_WORKER, 1, join(job, {"--devices", "4"}));
  REQUIRE(one.values.size() == 10);
  CHECK(run_worker(TRAINER_WORKER, 4, job).values == one.values);
  CHECK(run_worker(TRAINER_WORKER, 4, join(job, {"--fault", kill_at("gather", 2, 5)})).values == one.values);
}
