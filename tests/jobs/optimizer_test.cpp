// The optimizer's state in jobs of several processes with stages and replicas: numbers of steps, a loss that
// is NaN in f16, and a resume with another optimizer.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <map>
#include <string>
#include <vector>

#include "jobs/worker_job.hpp"
#include "support/temp_folder.hpp"

using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

/// The worker in so many processes.
process_result run_optimizer(int num_processes, const words& options) {
  words job = {OPTIMIZER_WORKER, "--microbatches", "2", "--log-level", "warn"};
  return run_process(worker_job(num_processes, join(job, options)));
}

/// What all ranks printed, by key: one value of each.
std::map<std::string, std::string> values_of(const process_result& result) {
  INFO(result.output << result.errors);
  REQUIRE(result.exit_code == 0);
  std::map<std::string, std::string> printed;
  for (const auto& [key, values] : printed_by(result).values) {
    CHECK(values.size() == 1);
    printed[key] = *values.begin();
  }
  return printed;
}

words kill(const std::string& point, int rank, int step) {
  return {"--snapshot-every", "2", "--fault", kill_at(point, rank, step)};
}

struct layout {
  int processes;
  words options;
};

/// Of one replica, and of two: in one process, over several, and with one of them lost.
const layout alone{1, {"--stages", "1"}}, two_alone{1, {"--stages", "1", "--replicas", "2"}};
const std::vector<layout> of_one = {{1, {"--stages", "2", "--devices", "2"}},
                                    {2, {"--stages", "2"}},
                                    {2, join({"--stages", "2"}, kill("apply", 1, 10))},
                                    {2, join({"--stages", "2"}, kill("forward", 0, 12))}};
const std::vector<layout> of_two = {
    {2, {"--stages", "1", "--replicas", "2"}},
    {4, {"--stages", "2", "--replicas", "2"}},
    {4, join({"--stages", "2", "--replicas", "2"}, kill("apply", 3, 11))},
    {4, join({"--stages", "2", "--replicas", "2"}, kill("all_reduce", 0, 12))},
    {4, join({"--stages", "2", "--replicas", "2"}, kill("backward", 2, 10))}};

void check_all_alike(const layout& reference, const std::vector<layout>& others, const words& more) {
  auto expected = values_of(run_optimizer(reference.processes, join(reference.options, more)));
  for (const auto& each : others) {
    auto options = join(each.options, more);
    std::string text;
    for (const auto& word : options) text += word + " ";
    INFO(each.processes << " processes: " << text);
    CHECK(values_of(run_optimizer(each.processes, options)) == expected);
  }
}

}  // namespace

TEST_CASE("a layer that is first used late moves by the learning rate, as torch.optim.Adam moves it",
          "[optimizer]") {
  for (const auto* optimizer : {"adam", "adamw"})
    for (const auto& each : {alone, two_alone, layout{2, {"--stages", "2"}},
                             layout{4, join({"--stages", "2", "--replicas", "2"}, kill("apply", 1, 10))}}) {
      auto options = join(each.options, {"--steps", "11", "--late", "10", "--optimizer", optimizer});
      auto moved = std::stod(values_of(run_optimizer(each.processes, options)).at("move"));
      INFO(optimizer << " moved " << moved);
      // AdamW shrinks the weights besides, by a thousandth of at most 0.08.
      CHECK(moved > 0.0995);
      CHECK(moved < 0.1005);
    }
}

TEST_CASE("numbers of steps are the same with any stages, replicas and losses of processes", "[optimizer]") {
  const words job = {"--steps", "14", "--late", "10", "--lr", "0.01"};
  check_all_alike(alone, of_one, job);
  check_all_alike(two_alone, of_two, job);
  check_all_alike(alone, {of_one[2]}, join(job, {"--optimizer", "lamb"}));
}

TEST_CASE("numbers of steps go on in a job that resumes", "[optimizer]") {
  for (const auto& each : {alone, of_two[1]}) {
    temp_folder folder;
    auto job = join(each.options, {"--late", "7", "--lr", "0.01"});
    auto expected = values_of(run_optimizer(each.processes, join(job, {"--steps", "14"})));
    auto in_folder = join(job, {"--snapshot-dir", (folder.path() / "run").string()});
    run_optimizer(each.processes, join(in_folder, {"--steps", "9"}));
    auto resumed = values_of(run_optimizer(each.processes, join(in_folder, {"--steps", "14", "--resume"})));
    CHECK(resumed == expected);
  }
}

TEST_CASE("a loss or gradients that stay NaN end a job in f16 with its last finite state on disk",
          "[optimizer]") {
  const std::string bad = GENERATE("loss", "gradients");
  for (const auto& each : {alone, of_two[0], of_two[1]}) {
    temp_folder folder;
    auto snapshots = (folder.path() / "run").string();
    auto result =
        run_optimizer(each.processes, join(each.options, {"--precision", "f16", "--steps", "60", "--bad", bad,
                                                          "--bad-from", "4", "--snapshot-dir", snapshots}));
    INFO(result.output << result.errors);
    CHECK(result.exit_code == 1);
    CHECK_THAT(result.errors,
               ContainsSubstring("is infinite or NaN") && ContainsSubstring("--on-non-finite"));
    auto verified = run_process(
        {.command = {TROUPE_PROGRAM, "snapshot", "verify", snapshots}, .environment = {}, .without = {}});
    INFO(verified.output);
    CHECK(verified.exit_code == 0);
  }
}

TEST_CASE("some steps with NaN gradients in f16 are skipped alike everywhere, and leave no NaN",
          "[optimizer]") {
  const words job = {"--precision", "f16",      "--steps", "14",   "--bad-from",
                     "4",           "--bad-to", "8",       "--lr", "0.01"};
  check_all_alike(alone, of_one, job);
  check_all_alike(two_alone, of_two, job);
  auto result = run_optimizer(2, {"--precision", "f16", "--steps", "60", "--bad-from", "4", "--bad-to", "50",
                                  "--on-non-finite", "skip", "--stages", "2"});
  CHECK_THAT(result.errors, ContainsSubstring("is infinite or NaN: the step is skipped"));
  CHECK_THAT(values_of(result).at("loss"), !ContainsSubstring("nan"));
  CHECK_THAT(values_of(result).at("move"), !ContainsSubstring("nan"));
}

namespace {

/// A job of 6 steps with snapshots in the folder, and the same one to 12 steps that resumes.
struct two_runs {
  words first, second;
};
process_result resumed(int num_processes, const temp_folder& folder, const two_runs& of) {
  words job = {"--snapshot-dir", (folder.path() / "run").string()};
  values_of(run_optimizer(num_processes, join(job, join({"--steps", "6"}, of.first))));
  return run_optimizer(num_processes, join(job, join({"--steps", "12", "--resume"}, of.second)));
}

}  // namespace

TEST_CASE("a resume with another optimizer is refused by name, with exit code 2, and changes no snapshot",
          "[optimizer]") {
  struct change {
    std::string before, now, text;
  };
  for (const auto& [before, now, text] :
       {change{"adam", "adamw", "of Adam, and this job uses AdamW"},
        {"adam", "sgd", "of Adam, and this job uses SGD"},
        {"sgd", "lamb", "of SGD, and this job uses LAMB"},
        {"sgd", "momentum", "of SGD, and this job uses SGD with momentum"}}) {
    temp_folder folder;
    auto result = resumed(2, folder, {{"--optimizer", before}, {"--optimizer", now}});
    INFO(result.output << result.errors);
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.errors, ContainsSubstring("the snapshot of step 6 has the optimizer's state " + text) &&
                                  ContainsSubstring("--reset-optimizer"));
    auto again = run_optimizer(1, {"--snapshot-dir", (folder.path() / "run").string(), "--steps", "12",
                                   "--resume", "--optimizer", before, "--stages", "2"});
    INFO(again.errors);
    CHECK(again.exit_code == 0);
  }
}

TEST_CASE("a resume with another learning rate or schedule says so, in a line for each", "[optimizer]") {
  temp_folder folder;
  auto result = resumed(2, folder, {{"--lr", "0.01", "--cosine", "6"}, {"--lr", "0.02", "--cosine", "10"}});
  INFO(result.output << result.errors);
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.errors,
             ContainsSubstring("optimizer lr was 0.01 in the snapshot, and is 0.02") &&
                 ContainsSubstring("optimizer schedule was cosine(6, 0, 0) in the snapshot, and is "
                                   "cosine(10, 0, 0)"));
  temp_folder frozen;
  auto thawed = resumed(1, frozen, {{"--frozen", "first"}, {}});
  INFO(thawed.errors);
  CHECK(thawed.exit_code == 0);
  CHECK_THAT(thawed.errors,
             ContainsSubstring("frozen parameters was 0.bias, 0.weight in the snapshot, and is none"));
  temp_folder other;
  auto same = resumed(1, other, {{"--lr", "0.01", "--cosine", "12"}, {"--lr", "0.01", "--cosine", "12"}});
  INFO(same.errors);
  CHECK(same.exit_code == 0);
  CHECK_THAT(same.errors, !ContainsSubstring("in the snapshot"));
}

TEST_CASE("a resume with --reset-optimizer keeps the weights and begins another optimizer's state anew",
          "[optimizer]") {
  auto run = [](int num_processes, const words& layout, const words& more) {
    temp_folder folder;
    return values_of(
        resumed(num_processes, folder,
                {join(layout, {"--optimizer", "momentum", "--lr", "0.01"}),
                 join(layout, join({"--optimizer", "adam", "--lr", "0.01", "--reset-optimizer"}, more))}));
  };
  auto expected = run(1, alone.options, {});
  CHECK(run(2, {"--stages", "2"}, {}) == expected);
  // Lost before the resumed job has a snapshot of its own: that of the other optimizer is read again.
  CHECK(run(2, {"--stages", "2"}, {"--snapshot-every", "100", "--fault", "apply@rank=1,step=8"}) == expected);
  const words two = {"--stages", "2", "--replicas", "2"};
  CHECK(run(4, two, {"--fault", "backward@rank=2,step=9"}) == run(1, two_alone.options, {}));
}

TEST_CASE("a model all of whose parameters are frozen is refused with exit code 2", "[optimizer]") {
  for (int num_processes : {1, 2, 4}) {
    auto result = run_optimizer(num_processes, {"--stages", "2", "--steps", "4", "--frozen", "yes"});
    INFO(result.output << result.errors);
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.errors, ContainsSubstring("parameters of the model are frozen"));
  }
}
