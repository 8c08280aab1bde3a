// Jobs of four processes that gather weights and predictions while processes are killed: all ranks get the
// same bits as a job of one process, or an error that says why not.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <map>
#include <set>
#include <string>

#include "jobs/worker_job.hpp"
#include "support/temp_folder.hpp"

using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

// Calls of the worker: 0 fit, 1 state_dict, 2 predict, 3 hash, 4 fit, 5 state_dict, 6 predict, 7 hash, 8
// save. Then come a barrier and, of the other model, 10 fit, 11 state_dict, 12 predict, 13 hash.
process_result run_trainer(int num_processes, const words& options) {
  words job = {TRAINER_WORKER, "--steps", "20", "--microbatches", "4", "--stages", "4"};
  if (num_processes == 1) job = join(job, {"--devices", "4"});
  return run_process(worker_job(num_processes, join(job, options)));
}

const printed_values& reference_run() {
  static const printed_values one = printed_by(run_trainer(1, {}));
  return one;
}

/// Every rank printed every key, with the values of the job of one process.
void check_same_as_reference(const process_result& result, int kills, std::size_t num_ranks = 4) {
  INFO(result.output << result.errors);
  REQUIRE(result.exit_code == 0);
  CHECK(num_kills(result) == kills);
  auto all = printed_by(result);
  for (const auto& [key, values] : reference_run().values) {
    INFO(key);
    CHECK(all.values[key] == values);
    CHECK(all.ranks[key].size() == num_ranks);
  }
}

}  // namespace

TEST_CASE("each of four processes gets the weights and predictions of a job of one", "[trainer]") {
  REQUIRE(reference_run().values.size() == 10);
  for (const auto& [key, values] : reference_run().values) CHECK(values.size() == 1);
  check_same_as_reference(run_trainer(4, {}), 0);
}

TEST_CASE("any rank may be killed while weights are gathered: all get the same bits", "[trainer]") {
  auto rank = GENERATE(0, 1, 2, 3);
  check_same_as_reference(run_trainer(4, {"--fault", kill_at("gather", rank, 5)}), 1);
}

TEST_CASE("the last stage may be killed while predictions are gathered", "[trainer]") {
  check_same_as_reference(run_trainer(4, {"--fault", kill_at("gather", 3, 6)}), 1);
}

TEST_CASE("a rank that is killed in later training gets the same weights again", "[trainer]") {
  auto rank = GENERATE(0, 2);
  check_same_as_reference(run_trainer(4, {"--fault", kill_at("apply", rank, 31)}), 1);
}

TEST_CASE("a rank killed in training of the next model, after an earlier kill, gets the same weights again",
          "[trainer]") {
  auto faults = kill_at("gather", 1, 1) + ";" + kill_at("gather", 2, 10);
  check_same_as_reference(run_trainer(4, {"--fault", faults}), 2);
}

TEST_CASE(
    "gathered weights that no cache holds any more end the job with an error, and never give other weights",
    "[trainer]") {
  temp_folder folder;
  auto faults = kill_at("apply", 1, 31) + ";" + kill_at("apply", 2, 31);
  auto result = run_trainer(4, {"--fault", faults, "--snapshot-dir", folder.path(), "--disk-every", "4"});
  INFO(result.output << result.errors);
  CHECK(result.exit_code != 0);
  CHECK_THAT(result.errors, ContainsSubstring("these are kept nowhere any more"));
  for (const auto& [key, values] : printed_by(result).values) CHECK(values == reference_run().values.at(key));
}

TEST_CASE("rank 0 may be killed while it saves: the file is complete and unchanged", "[trainer]") {
  temp_folder folder;
  auto file = (folder.path() / "model.safetensors").string();
  auto result = run_trainer(4, {"--file", file, "--fault", kill_at("gather", 0, 8)});
  INFO(result.output << result.errors);
  REQUIRE(result.exit_code == 0);
  CHECK(num_kills(result) == 1);
  CHECK(printed_by(result).values["saved"] == reference_run().values.at("second-state"));
}

TEST_CASE("a file that cannot be written is refused in every process, and the job goes on", "[trainer]") {
  auto result = run_trainer(4, {"--file", "/dev/null"});
  INFO(result.output << result.errors);
  REQUIRE(result.exit_code == 0);
  auto all = printed_by(result);
  CHECK(all.values["saved"] == std::set<std::string>{"refused"});
  CHECK(all.ranks["saved"].size() == 4);
  CHECK(all.values["other-state"] == reference_run().values.at("other-state"));
}

TEST_CASE("an evaluation and a prediction of no samples are refused in every process, and the job goes on",
          "[trainer]") {
  words faults = GENERATE(words{}, words{"--fault", "forward@rank=2,step=5"});
  auto result = run_trainer(4, join({"--none", "yes"}, faults));
  INFO(result.output << result.errors);
  REQUIRE(result.exit_code == 0);
  CHECK(num_kills(result) == (faults.empty() ? 0 : 1));
  auto all = printed_by(result);
  for (const auto* key : {"evaluated-none", "predicted-none"}) {
    CHECK(all.values[key] == std::set<std::string>{"refused"});
    CHECK(all.ranks[key].size() == 4);
  }
  CHECK(all.values["first-state"] == reference_run().values.at("first-state"));
}

TEST_CASE("cancelled training ends at the same step in all processes, also in a restarted one", "[trainer]") {
  words faults = GENERATE(words{}, words{"--fault", "gather@rank=2,step=1"});
  auto result = run_trainer(4, join({"--cancel-at", "6"}, faults));
  INFO(result.output << result.errors);
  REQUIRE(result.exit_code == 0);
  auto all = printed_by(result);
  for (const auto* key : {"first-steps", "first-state", "first-outputs", "second-state"}) {
    INFO(key);
    CHECK(all.values[key].size() == 1);
    CHECK(all.ranks[key].size() == 4);
  }
  CHECK(num_kills(result) == (faults.empty() ? 0 : 1));
  auto first = std::stoi(*all.values["first-steps"].begin());
  CHECK(first >= 6);
  CHECK(first < 20);
  CHECK(all.values["second-steps"] == std::set<std::string>{std::to_string(first + 20)});
}

TEST_CASE("a call within a callback is refused at once, and the job trains on as if it had not been made",
          "[trainer]") {
  auto num_processes = GENERATE(1, 2, 4);
  bool is_killed = num_processes > 1 && GENERATE(false, true);
  words faults = is_killed ? words{"--fault", "gather@rank=1,step=1"} : words{};
  auto result = run_trainer(num_processes, join({"--calls-within", "yes"}, faults));
  check_same_as_reference(result, is_killed ? 1 : 0, static_cast<std::size_t>(num_processes));
  auto all = printed_by(result);
  CHECK(all.values["within-on_step"] == std::set<std::string>{"refused"});
  if (all.values.contains("within-on_recovered"))
    CHECK(all.values["within-on_recovered"] == std::set<std::string>{"refused"});
}

TEST_CASE("a Trainer that its own callback destroys ends the program with the reason", "[trainer]") {
  auto result = run_trainer(1, {"--destroys", "yes"});
  INFO(result.output << result.errors);
  CHECK(result.exit_code != 0);
  CHECK_THAT(result.errors, ContainsSubstring("destroyed while the callback on_step of Trainer::fit runs"));
}

namespace {

words with_latest(const words& options = {}) {
  return join({"--latest", "yes", "--snapshot-every", "1"}, options);
}

bool is_latest(const std::string& key) { return key.find("-latest-") != std::string::npos; }

/// The weights of each step that a thread of any process saw while fit ran.
values_by_key latest_in(const process_result& result) {
  auto all = printed_by(result).values;
  std::erase_if(all, [](const auto& each) { return !is_latest(each.first); });
  return all;
}

}  // namespace

TEST_CASE("a thread of each process gets the weights while fit runs, the same in all, also after kills",
          "[trainer]") {
  // Of 20 steps, with a copy of each; the other model's are not the first one's.
  static const auto reference = latest_in(run_trainer(1, with_latest()));
  auto faults = GENERATE(words{}, words{"--fault", kill_at("apply", 1, 13)},
                         words{"--fault", kill_at("apply", 0, 9)}, words{"--fault", kill_at("apply", 1, 31)});
  auto result = run_trainer(2, with_latest(faults));
  INFO(result.output << result.errors);
  REQUIRE(result.exit_code == 0);
  CHECK(num_kills(result) == (faults.empty() ? 0 : 1));
  auto all = printed_by(result);
  for (const auto* name : {"first", "second", "other"})  // an error, or a step that went back
    CHECK_FALSE(all.values.contains(name + std::string("-latest")));
  CHECK(all.ranks["second-state"].size() == 2);
  // By step and model: a process that was started again names a step after the call that it repeats.
  std::map<std::string, std::set<std::string>> seen;
  auto add = [&](const std::map<std::string, std::set<std::string>>& values) {
    for (const auto& [key, hashes] : values) {
      auto model = key.starts_with("other") ? "other" : "first";
      seen[model + key.substr(key.rfind('-'))].insert(hashes.begin(), hashes.end());
    }
  };
  add(reference);
  add(latest_in(result));
  // The end of a fit is the state that it leaves, also of the other model.
  CHECK(seen["first-20"] == reference_run().values.at("first-state"));
  CHECK(seen["first-40"] == reference_run().values.at("second-state"));
  CHECK(seen["other-20"] == reference_run().values.at("other-state"));
  for (const auto& [step, hashes] : seen) {
    INFO(step);
    CHECK(hashes.size() == 1);
  }
}

TEST_CASE("a process that never holds the whole model says so when it is asked for the latest weights",
          "[trainer]") {
  auto result = run_trainer(4, with_latest());
  INFO(result.output << result.errors);
  REQUIRE(result.exit_code == 0);
  CHECK(latest_in(result).empty());
  CHECK_THAT(result.output,
             ContainsSubstring("[Trainer::latest_weights] expected a process that holds copies "
                               "of all 4 stages, got rank 2"));
  CHECK_THAT(result.output, ContainsSubstring("read_weights of the --snapshot-dir"));
}
