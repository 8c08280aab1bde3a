// Replicas that own shards of the optimizer's state, of gradients and weights: the bits of replicas that hold
// all of it, whatever is lost and however a job is resumed.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>

#include "jobs/replicas/replica_layout.hpp"
#include "support/temp_folder.hpp"

using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

words with_stages(const replica_layout& wanted, int num_steps, const words& more) {
  auto options = job_of(wanted, num_steps);
  options.insert(options.end(), {"--stages", std::to_string(wanted.stages), "--shard", wanted.shard});
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

}  // namespace

TEST_CASE("replicas that own shards have the bits of one process, and lose one in any action", "[shards]") {
  for (const char* in : {"", "unshard", "forward", "backward", "all_reduce", "reduce", "apply", "copy_state"})
    check_same_bits({.stages = 1, .processes = 2, .killed_in = in, .lost_rank = 1, .shard = "optimizer"});
  for (const char* in : {"", "backward", "all_reduce"})
    check_same_bits({.stages = 1, .processes = 2, .killed_in = in, .lost_rank = 1, .shard = "grad"});
  check_same_bits({.replicas = 3,
                   .stages = 2,
                   .processes = 4,
                   .schedule = "zb_h1",
                   .killed_in = "apply",
                   .shard = "grad"});
  check_same_bits({.replicas = 4,
                   .stages = 1,
                   .processes = 3,
                   .killed_in = "backward",
                   .exchange = "unclipped",
                   .lost_rank = 2,
                   .shard = "grad"});
  check_same_bits({.replicas = 2,
                   .stages = 2,
                   .processes = 4,
                   .killed_in = "all_reduce",
                   .exchange = "bf16",
                   .lost_rank = 3,
                   .shard = "optimizer"});
}

TEST_CASE("replicas that own shards of weights have the bits of one process, and lose one in any action",
          "[shards]") {
  for (const char* in : {"", "unshard", "forward", "backward", "all_reduce", "reduce", "apply", "copy_state"})
    check_same_bits({.stages = 2, .processes = 2, .killed_in = in, .lost_rank = 1, .shard = "full"});
  check_same_bits({.replicas = 3,
                   .stages = 2,
                   .processes = 4,
                   .schedule = "zb_h1",
                   .killed_in = "weight",
                   .shard = "full"});
  check_same_bits({.replicas = 4,
                   .stages = 3,
                   .processes = 3,
                   .schedule = "gpipe",
                   .killed_in = "unshard",
                   .exchange = "unclipped",
                   .lost_rank = 2,
                   .shard = "full"});
}

TEST_CASE("two owners of shards that are lost at once cost no bit", "[shards]") {
  replica_layout wanted{.replicas = 4, .stages = 1, .processes = 4, .shard = "full"};
  auto expected = expected_bits(wanted).weights_sha256;
  // Whose copies are in other processes; then one with the copy of the other's, which needs the disk.
  temp_folder folder;
  for (const auto& [lost, more] :
       {std::pair<std::string, words>{"1,3", {}},
        {"1,2", {"--snapshot-dir", folder.path().string(), "--disk-every", "2"}}}) {
    CAPTURE(lost);
    auto options =
        join({"--snapshot-every", "2", "--fault",
              "backward@rank=" + lost.substr(0, 1) + ",step=7;backward@rank=" + lost.substr(2) + ",step=7"},
             more);
    auto outcome = run_layout(wanted, options);
    INFO(outcome.process.errors);
    CHECK(outcome.weights_sha256() == expected);
    CHECK_FALSE(outcome.named("recovery").empty());
  }
}

TEST_CASE("a plan's own Us and Ss are run with --shard full, and what they do not free is told", "[shards]") {
  temp_folder folder;
  auto file = (folder.path() / "plan.csv").string();
  std::ofstream(file) << "0U,0F0,0S,0U,0F1,0S,0U,0B0,0S,0U,0B1,0S\n";
  for (const auto& [shard, told] : {std::pair("none", "shards the parameters of stages (U and S"),
                                    {"optimizer", "frees the parameters of stages (S"},
                                    {"full", ""}}) {
    CAPTURE(shard);
    auto outcome = run_local(join(job_of({}), {"--plan", file, "--shard", shard}), example::gpt);
    CHECK(outcome.weights_sha256() == expected_bits({}).weights_sha256);
    std::string text = told;
    if (text.empty())
      CHECK(outcome.process.errors.find("the parameters of stages") == std::string::npos);
    else
      CHECK_THAT(outcome.process.errors, ContainsSubstring(text) && ContainsSubstring("save no memory"));
  }
}

TEST_CASE("a model whose states exceed a device's limit trains where four divide them", "[shards]") {
  auto with = [](const char* shard) {
    return words{"--size",     "tiny", "--layers",       "24", "--batch",    "4",          "--steps",   "2",
                 "--replicas", "4",    "--stages",       "26", "--schedule", "looped_bfs", "--devices", "4",
                 "--shard",    shard,  "--microbatches", "1"};
  };
  words limit{"--memory-limit", "14MiB"};
  for (const char* shard : {"none", "grad"}) {
    CAPTURE(shard);
    run_options refusing;
    refusing.command = join(join({GPT_PROGRAM, "--json"}, with(shard)), limit);
    auto refused = run_process(refusing);
    CHECK(refused.exit_code == 2);
    CHECK_THAT(refused.errors, ContainsSubstring("14680064 bytes") && ContainsSubstring("the limit"));
  }
  CHECK(run_local(join(with("full"), limit), example::gpt).weights_sha256() ==
        run_local(with("none"), example::gpt).weights_sha256());
}

TEST_CASE("replicas that own shards may be lost in any action of any layout", "[.soak][shards]") {
  for (int replicas : {2, 3, 4, 8})
    for (int processes : {2, 4})
      for (int stages : {1, 2})
        for (const char* exchange : {"f32", "bf16", "unclipped"})
          for (const char* in : {"unshard", "forward", "backward", "all_reduce", "apply", "copy_state"})
            for (const char* shard : {"optimizer", "grad", "full"})
              check_same_bits({.replicas = replicas,
                               .stages = stages,
                               .processes = processes,
                               .killed_in = in,
                               .exchange = exchange,
                               .lost_rank = std::min(processes, replicas * stages) - 1,
                               .shard = shard});
}

TEST_CASE("a snapshot of shards has one part for each, and is resumed with other stages, and without shards",
          "[shards]") {
  temp_folder folder;
  auto expected = expected_bits({}).weights_sha256;
  auto from = [&](const char* name) { return (folder.path() / name).string(); };
  run_local(with_stages({.stages = 1, .shard = "optimizer"}, 6, {"--snapshot-dir", from("sharded")}),
            example::gpt);
  std::vector<std::string> parts;
  for (const auto& entry :
       std::filesystem::directory_iterator(folder.path() / "sharded" / "step-000000000006"))
    if (entry.path().filename().string().starts_with("stage")) parts.push_back(entry.path().filename());
  std::ranges::sort(parts);
  CHECK(parts == words{"stage-0000-shard-0001.part", "stage-0000.part"});
  run_local(with_stages({.stages = 1}, 6, {"--snapshot-dir", from("whole")}), example::gpt);
  struct resumed {
    const char *folder, *shard;
    int stages, processes;
  };
  for (const auto& [name, shard, stages, processes] :
       {resumed{"sharded", "none", 2, 1}, resumed{"sharded", "optimizer", 2, 2},
        resumed{"sharded", "full", 3, 2}, resumed{"whole", "full", 2, 1}, resumed{"whole", "grad", 1, 2}}) {
    CAPTURE(name, shard, stages, processes);
    auto copy = folder.path() / (std::string(name) + shard + std::to_string(stages));
    std::filesystem::copy(folder.path() / name, copy, std::filesystem::copy_options::recursive);
    auto options =
        with_stages({.stages = stages, .shard = shard}, 12, {"--snapshot-dir", copy.string(), "--resume"});
    auto outcome = processes == 1 ? run_local(options, example::gpt)
                                  : run_launched(processes, options, {}, example::gpt);
    INFO(outcome.process.errors);
    CHECK(outcome.weights_sha256() == expected);
  }
}

TEST_CASE("without one of its shards on disk a snapshot is not resumed from, and says which is missing",
          "[shards]") {
  temp_folder folder;
  auto options = with_stages({.stages = 1, .shard = "optimizer"}, 6,
                             {"--snapshot-dir", (folder.path() / "shards").string()});
  run_local(options, example::gpt);
  for (const auto& step : std::filesystem::directory_iterator(folder.path() / "shards"))
    if (step.is_directory()) std::filesystem::remove(step.path() / "stage-0000-shard-0001.part");
  words command = {GPT_PROGRAM, "--json", "--resume"};
  auto again = with_stages({.stages = 1, .shard = "optimizer"}, 12,
                           {"--snapshot-dir", (folder.path() / "shards").string()});
  command.insert(command.end(), again.begin(), again.end());
  run_options refusing;
  refusing.command = command;
  auto result = run_process(refusing);
  INFO(result.errors);
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.errors, ContainsSubstring("stage-0000-shard-0001.part"));
}

TEST_CASE("shards and sums over a library exclude each other", "[shards]") {
  if (!TROUPE_TEST_GLOO) SKIP("built without gloo");
  words command = {GPT_PROGRAM, "--json", "--backend", "gloo"};
  auto options = with_stages({.stages = 1, .shard = "optimizer"}, 2, {});
  command.insert(command.end(), options.begin(), options.end());
  run_options refusing;
  refusing.command = command;
  auto result = run_process(refusing);
  INFO(result.errors);
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.errors, ContainsSubstring("shard optimizer") && ContainsSubstring("Use --backend ucx"));
}
