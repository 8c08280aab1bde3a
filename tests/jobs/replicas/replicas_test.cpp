// Data parallelism within the plan. Replicas of a pipeline have the bits of one process that hosts them all:
// hosted in one process or several, evenly or not, and with failures in each kind of action.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "jobs/replicas/pairwise_rows.hpp"
#include "jobs/replicas/replica_layout.hpp"
#include "support/temp_folder.hpp"

using namespace troupe::testing;

namespace {

const std::vector<int> numbers_of_replicas{1, 2, 3, 4, 8}, numbers_of_stages{1, 2, 4},
    numbers_of_processes{1, 2, 3, 4};
const words schedules{"1f1b", "gpipe", "zb_h1"},
    lost_in{"", "forward", "backward", "all_reduce", "reduce", "apply"},
    exchanges{"f32", "bf16", "f16", "top_k", "power_sgd", "average", "unclipped"};

replica_layout layout_of(const test_row& row) {
  auto at = [&row](std::size_t factor) { return static_cast<std::size_t>(row[factor]); };
  replica_layout wanted{numbers_of_replicas[at(0)], numbers_of_stages[at(1)], numbers_of_processes[at(2)],
                        schedules[at(3)],           lost_in[at(4)],           exchanges[at(5)]};
  wanted.lost_rank =
      std::min(wanted.processes, wanted.replicas * wanted.stages) - 1;  // the last that has a device
  return wanted;
}

/// A process that is alone cannot be lost, and a single replica exchanges nothing.
bool is_possible(const test_row& row) {
  auto wanted = layout_of(row);
  if (wanted.processes == 1 && !wanted.killed_in.empty()) return false;
  // Without a norm no stage has a reduction: the tied weight is in one stage of the only device.
  if (wanted.exchange == "unclipped" && wanted.killed_in == "reduce" && wanted.stages == 1) return false;
  return wanted.replicas > 1 || (wanted.killed_in != "all_reduce" && wanted.exchange == "f32");
}

std::vector<test_row> all_layouts() {
  return all_rows({static_cast<int>(numbers_of_replicas.size()), static_cast<int>(numbers_of_stages.size()),
                   static_cast<int>(numbers_of_processes.size()), static_cast<int>(schedules.size()),
                   static_cast<int>(lost_in.size()), static_cast<int>(exchanges.size())},
                  is_possible);
}

}  // namespace

TEST_CASE("replicas give the bits of one process in each pair of a layout, a loss and an exchange",
          "[replicas]") {
  auto rows = pairwise_rows(all_layouts());
  CHECK(rows.size() < 50);
  for (const auto& row : rows) check_same_bits(layout_of(row));
}

TEST_CASE("replicas give the bits of one process in every layout, with every loss and exchange",
          "[.soak][replicas]") {
  auto rows = all_layouts();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    check_same_bits(layout_of(rows[i]));
    if ((i + 1) % 200 == 0) std::printf("%zu of %zu layouts\n", i + 1, rows.size()), std::fflush(stdout);
  }
}

TEST_CASE("each form of what replicas exchange has bits of its own", "[replicas]") {
  std::map<std::string, std::string> seen;  // by hash
  for (const auto& exchange : exchanges) {
    INFO(exchange);
    CHECK(seen.emplace(expected_bits({.exchange = exchange}).weights_sha256, exchange).second);
  }
  replica_layout dense{.exchange = "top_k"};
  auto options = job_of(dense);
  auto fraction = std::ranges::find(options, "--top-k-gradients");
  options.erase(fraction, fraction + 2);
  CHECK(seen.emplace(run_local(options, example::gpt).weights_sha256(), "bf16 without an exchange").second);
}

TEST_CASE("of two replicas with two stages each in four processes any may be killed in any action",
          "[.soak][replicas]") {
  for (int lost : {0, 1, 2, 3})
    for (const char* in : {"forward", "backward", "all_reduce", "reduce", "apply"})
      check_same_bits({.processes = 4, .killed_in = in, .lost_rank = lost});
}

namespace {

/// 60 steps of two replicas of two stages in four processes: rank 2 r + s has stage s of replica r.
words longer_job() { return job_of({}, 60); }

const job_bits& bits_of_longer_job() {
  static const auto expected = bits_of(run_local(longer_job(), example::gpt));
  return expected;
}

/// Ranks that are killed together when 20 steps are done.
process_result run_with_losses(const std::vector<int>& lost, const words& more) {
  run_options options;
  options.command = {TROUPE_PROGRAM, "launch", "--nproc-per-node", "4"};
  auto add = [&options](const words& added) {
    options.command.insert(options.command.end(), added.begin(), added.end());
  };
  for (int rank : lost) add({"--drill", std::to_string(rank) + "@20"});
  add({"--", GPT_PROGRAM, "--json", "--stages", "2", "--snapshot-every", "2"});
  add(longer_job());
  add(more);
  options.without = {"RANK", "WORLD_SIZE"};
  options.deadline = std::chrono::minutes(4);
  return run_process(options);
}

}  // namespace

TEST_CASE("a whole replica may be lost at once, and one process of each stage: the state is in memory",
          "[replicas]") {
  for (const auto& lost : std::vector<std::vector<int>>{{0, 1}, {2, 3}, {0, 3}}) {
    auto result = run_with_losses(lost, {});
    INFO("lost " << lost[0] << " and " << lost[1] << "\n" << result.errors);
    CHECK(result.exit_code == 0);
    CHECK_THAT(result.output, Catch::Matchers::ContainsSubstring(bits_of_longer_job().weights_sha256));
  }
}

TEST_CASE("all processes that host a stage may be lost at once: the state is read from disk, if it is there",
          "[replicas]") {
  temp_folder folder;
  auto in_folder = run_with_losses(
      {1, 3}, {"--disk-every", "5", "--snapshot-dir", (folder.path() / "snapshots").string()});
  INFO(in_folder.errors);
  CHECK(in_folder.exit_code == 0);
  CHECK_THAT(in_folder.output, Catch::Matchers::ContainsSubstring(bits_of_longer_job().weights_sha256));
  auto in_memory = run_with_losses({0, 2}, {});
  INFO(in_memory.errors);
  CHECK(in_memory.exit_code == 1);
  CHECK_THAT(in_memory.errors, Catch::Matchers::ContainsSubstring("--snapshot-dir"));
}

TEST_CASE("with replicas a snapshot has one part of each stage, and several where replicas differ",
          "[replicas]") {
  auto parts_in = [](const std::string& exchange) {
    temp_folder folder;
    auto options = job_of({.exchange = exchange}, 4);
    options.insert(options.end(),
                   {"--stages", "2", "--snapshot-dir", (folder.path() / "snapshots").string()});
    run_local(options, example::gpt);
    std::vector<std::string> parts;
    auto step = folder.path() / "snapshots" / "step-000000000004";
    for (const auto& entry : std::filesystem::directory_iterator(step))
      if (entry.path().filename().string().starts_with("stage")) parts.push_back(entry.path().filename());
    std::ranges::sort(parts);
    return parts;
  };
  CHECK(parts_in("f32") == words{"stage-0000.part", "stage-0001.part"});
  CHECK(parts_in("top_k") == words{"stage-0000-replica-0001.part", "stage-0000.part",
                                   "stage-0001-replica-0001.part", "stage-0001.part"});
}

TEST_CASE("a process with several replicas of a stage, or another one with the last, may be lost",
          "[replicas]") {
  // Of four replicas of one stage rank 0 has two; of two replicas of two stages it has the whole first one.
  for (int lost : {0, 1})
    check_same_bits({.replicas = 4, .stages = 1, .processes = 3, .killed_in = "apply", .lost_rank = lost});
  for (int lost : {0, 1, 2})
    check_same_bits(
        {.replicas = 2, .stages = 2, .processes = 3, .killed_in = "copy_state", .lost_rank = lost});
}

TEST_CASE("a job with replicas resumes from its snapshot, and another number of replicas is refused",
          "[replicas]") {
  temp_folder folder;
  auto job_with = [&](const replica_layout& wanted, int num_steps) {
    auto options = job_of(wanted, num_steps);
    options.insert(options.end(),
                   {"--stages", "2", "--snapshot-dir", (folder.path() / "snapshots").string()});
    if (num_steps == 12) options.emplace_back("--resume");
    return options;
  };
  run_local(job_with({}, 6), example::gpt);
  words refused = {GPT_PROGRAM, "--json"};
  auto other = job_with({.replicas = 4}, 12);
  refused.insert(refused.end(), other.begin(), other.end());
  run_options refusing;
  refusing.command = refused;
  auto result = run_process(refusing);
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.errors, Catch::Matchers::ContainsSubstring("replicas"));
  CHECK(run_launched(2, job_with({}, 12), {}, example::gpt).weights_sha256() ==
        expected_bits({}).weights_sha256);
}

TEST_CASE("what replicas keep of their own is in the snapshot, and other options are refused", "[replicas]") {
  struct changed {
    std::string exchange, option, to;
  };
  for (const auto& [exchange, option, to] :
       {changed{"top_k", "--top-k-gradients", "0.1"}, changed{"power_sgd", "--power-sgd-rank", "3"},
        changed{"average", "--average-every", "2"}}) {
    INFO(exchange);
    temp_folder folder;
    auto job_with = [&](int num_steps, const words& more) {
      auto options = job_of({.exchange = exchange}, num_steps);
      options.insert(options.end(), {"--snapshot-dir", (folder.path() / "snapshots").string()});
      options.insert(options.end(), more.begin(), more.end());
      return options;
    };
    run_local(job_with(6, {"--stages", "1"}), example::gpt);
    words refused = {GPT_PROGRAM, "--json"};
    auto other = job_with(12, {"--stages", "1", "--resume"});
    *(std::ranges::find(other, option) + 1) = to;
    refused.insert(refused.end(), other.begin(), other.end());
    run_options refusing;
    refusing.command = refused;
    auto result = run_process(refusing);
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.errors, Catch::Matchers::ContainsSubstring("snapshot"));
    CHECK(run_launched(2, job_with(12, {"--stages", "2", "--resume"}), {}, example::gpt).weights_sha256() ==
          expected_bits({.exchange = exchange}).weights_sha256);
  }
}

namespace {

using printed_values = std::map<std::string, std::set<std::string>>;  // by key, of all ranks

printed_values run_worker(const std::string& model, int num_processes, const words& more) {
  words command = {REPLICAS_WORKER, "--model", model, "--steps", "6", "--batch", "48", "--microbatches", "2"};
  if (num_processes > 1) {
    words launcher = {TROUPE_PROGRAM, "launch", "--nproc-per-node", std::to_string(num_processes), "--"};
    command.insert(command.begin(), launcher.begin(), launcher.end());
  }
  command.insert(command.end(), more.begin(), more.end());
  run_options running;
  running.command = command;
  auto result = run_process(running);
  INFO(result.errors);
  CHECK(result.exit_code == 0);
  if (std::ranges::count(more, "--fault") > 0)
    CHECK_THAT(result.errors, Catch::Matchers::ContainsSubstring("was killed by SIGKILL"));
  printed_values printed;
  std::istringstream lines(result.output);
  for (std::string line, rank, key, value; std::getline(lines, line);) {
    // The launcher puts "[RANK] " before each line.
    std::istringstream parts(line.starts_with('[') ? line.substr(line.find(' ')) : line);
    if (parts >> rank >> key >> value) printed[key].insert(value);
  }
  // The losses of 6 steps, and four others; a process that is lost may have kept some to itself.
  auto num_others = printed.contains("in-place") ? 1U : 0U;
  CHECK((printed.size() == 10 + num_others || std::ranges::count(more, "--fault") == 1));
  return printed;
}

}  // namespace

TEST_CASE("weights that some replicas do not use, and the metrics of all, are the same in four processes",
          "[replicas]") {
  for (const auto& exchange : {words{}, words{"--top-k-gradients", "0.05"}, words{"--power-sgd-rank", "2"},
                               words{"--average-every", "3"}}) {
    auto run = [&exchange](int num_processes, int replicas, int stages) {
      words options = {"--replicas", std::to_string(replicas), "--stages", std::to_string(stages)};
      options.insert(options.end(), exchange.begin(), exchange.end());
      return run_worker("conditional", num_processes, options);
    };
    INFO((exchange.empty() ? "f32" : exchange.front()));
    CHECK(run(4, 2, 2) == run(1, 2, 1));
    CHECK(run(4, 3, 2) == run(1, 3, 1));
  }
}

TEST_CASE("a process may be lost while replicas share the batches of a prediction", "[replicas]") {
  auto run = [](int num_processes, int replicas, const std::string& fault = {}) {
    words options = {"--replicas", std::to_string(replicas), "--stages", "2"};
    if (!fault.empty()) options.insert(options.end(), {"--snapshot-every", "2", "--fault", fault});
    return run_worker("conditional", num_processes, options);
  };
  for (int replicas : {2, 3}) {
    auto expected = run(1, replicas);
    auto last = std::to_string(2 * replicas - 1);  // has the last stage of the last replica
    for (const auto& rank : {std::string("1"), last}) {
      auto seen = run(2 * replicas, replicas, "gather@rank=" + rank + ",step=2");
      for (const char* what : {"evaluated", "predicted", "weights"}) CHECK(seen[what] == expected.at(what));
    }
  }
}

TEST_CASE(
    "a large weight's gradient, by blocks of rows and read in place, has the same bits in each schedule",
    "[replicas]") {
  auto run = [](int num_processes, int stages, const std::string& schedule, const std::string& fault = {}) {
    words options = {"--replicas", "2", "--stages", std::to_string(stages), "--schedule", schedule};
    if (!fault.empty()) options.insert(options.end(), {"--snapshot-every", "2", "--fault", fault});
    auto seen = run_worker("wide", num_processes, options);
    CHECK(seen["in-place"].contains("yes") == (num_processes > 1));
    seen.erase("in-place");
    return seen;
  };
  auto expected = run(1, 1, "1f1b");
  CHECK(run(2, 1, "gpipe") == expected);
  CHECK(run(4, 3, "zb_h1") == expected);  // weight gradients after input gradients
  CHECK(run(2, 1, "1f1b", "forward@rank=1,step=4")["weights"] == expected.at("weights"));
}

TEST_CASE("a SyncBatchNorm over replicas has the same bits in any processes, which may be lost within it",
          "[replicas]") {
  auto run = [](int num_processes, int replicas, int stages, const std::string& fault = {}) {
    words options = {"--replicas", std::to_string(replicas), "--stages", std::to_string(stages)};
    if (!fault.empty()) options.insert(options.end(), {"--snapshot-every", "2", "--fault", fault});
    return run_worker("sync_batch_norm", num_processes, options);
  };
  auto two = run(1, 2, 1), three = run(1, 3, 1);
  CHECK(two != three);
  CHECK(run(3, 2, 2) == two);
  CHECK(run(4, 3, 2) == three);
  for (const char* fault : {"forward@rank=0,step=3", "backward@rank=3,step=4", "forward@rank=2,step=4",
                            "all_reduce@rank=1,step=3", "apply@rank=3,step=5"}) {
    INFO(fault);
    auto seen = run(4, 2, 2, fault);
    CHECK(seen["weights"] == two.at("weights"));
    CHECK(seen["evaluated"] == two.at("evaluated"));
  }
}

TEST_CASE("replicas of which only some come to a SyncBatchNorm end the job, and the launcher says why",
          "[replicas]") {
  run_options running;
  running.command = {TROUPE_PROGRAM,  "launch",  "--nproc-per-node", "2",          "--",
                     REPLICAS_WORKER, "--model", "sometimes_normed", "--replicas", "2",
                     "--steps",       "20",      "--batch",          "48"};
  auto result = run_process(running);
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.errors, Catch::Matchers::ContainsSubstring("all replicas must run the same modules") &&
                                Catch::Matchers::ContainsSubstring("SyncBatchNorm"));
}

TEST_CASE(
    "samples without a label have the same bits in any processes, stages and replicas, which may be lost",
    "[replicas]") {
  auto run = [](int num_processes, int replicas, int stages, const words& more = {}) {
    words options = {"--replicas", std::to_string(replicas), "--stages", std::to_string(stages)};
    options.insert(options.end(), more.begin(), more.end());
    return run_worker("partly_labelled", num_processes, options);
  };
  for (int replicas : {1, 2}) {
    auto expected = run(1, replicas, 1);
    CHECK(run(4, replicas, 4 / replicas) == expected);
    for (const auto* lost : {"forward@rank=1,step=4", "backward@rank=3,step=5"})
      CHECK(run(4, replicas, 4 / replicas, {"--snapshot-every", "2", "--fault", lost})["weights"] ==
            expected.at("weights"));
  }
}
