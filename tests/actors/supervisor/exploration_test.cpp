#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include "simulated_job.hpp"
#include "support/temp_folder.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

actors::job::call_request call(actors::job::call_kind kind, std::uint32_t source, std::uint64_t target_step,
                               std::uint64_t num_batches = 0) {
  return {0, kind, source, target_step, num_batches, num_batches == 0 ? 0 : 2};
}

/// Sources are numbered in the order of the calls that add them.
std::vector<actors::job::call_request> example_calls() {
  return {call(actors::job::call_kind::barrier, 0, 0),      call(actors::job::call_kind::train, 0, 12),
          call(actors::job::call_kind::evaluate, 1, 12, 5), call(actors::job::call_kind::hash, 0, 12),
          call(actors::job::call_kind::train, 2, 20),       call(actors::job::call_kind::hash, 0, 20),
          call(actors::job::call_kind::evaluate, 3, 20, 4), call(actors::job::call_kind::barrier, 0, 0),
          call(actors::job::call_kind::barrier, 0, 0)};
}

/// Steps in two calls each, with other calls before, between and after them.
std::vector<actors::job::call_request> calls_with_half_steps() {
  std::vector<actors::job::call_request> calls{call(actors::job::call_kind::train, 0, 3)};
  auto step = [&calls](std::uint64_t target) {
    calls.push_back(call(actors::job::call_kind::forward_backward, 1, target));
    if (target == 5) calls.push_back(call(actors::job::call_kind::barrier, 0, 0));
    calls.push_back(call(actors::job::call_kind::optimizer_step, 1, target));
  };
  for (std::uint64_t target = 4; target <= 9; ++target) step(target);
  calls.push_back(call(actors::job::call_kind::hash, 0, 9));
  calls.push_back(call(actors::job::call_kind::evaluate, 2, 9, 3));
  for (std::uint64_t target = 10; target <= 12; ++target) step(target);
  for (auto kind : {actors::job::call_kind::hash, actors::job::call_kind::barrier})
    calls.push_back(call(kind, 0, 12));
  calls.back().target_step = 0;
  return calls;
}

simulated_job_options example_job(std::uint32_t seed) {
  std::mt19937 random(seed);
  simulated_job_options options;
  options.seed = seed;
  options.world_size = 1 + static_cast<int>(random() % 4);
  options.devices_per_rank = 1 + static_cast<int>(random() % 2);
  auto most_devices = static_cast<unsigned>(options.world_size * options.devices_per_rank);
  options.num_stages = 1 + static_cast<int>(random() % (most_devices + 1));
  options.schedule = random() % 2 ? schedule_kind::gpipe : schedule_kind::one_f_one_b;
  options.calls = example_calls();
  options.num_failures = static_cast<int>(random() % 6);
  options.failure_every = random() % 2 ? 150 : 1500;
  return options;
}

std::string told(const simulated_job& job) {
  std::string text;
  for (const auto& line : job.history()) text += line + "\n";
  for (const auto& line : job.problems()) text += "problem: " + line + "\n";
  return text;
}

/// Runs a job with failures and compares it with one of the same shape that has none.
void explore(const simulated_job_options& options) {
  auto undisturbed = options;
  undisturbed.num_failures = undisturbed.num_io_failures = undisturbed.num_pause_requests = 0;
  undisturbed.folder.clear();
  undisturbed.moves_devices = false;
  undisturbed.contents.clear();
  undisturbed.num_slices = 1;
  simulated_job expected(undisturbed), job(options);
  expected.run();
  job.run();
  INFO("seed " << options.seed << ", " << options.world_size << " processes, " << options.devices_per_rank
               << " devices each, " << options.num_replicas << " replicas of " << options.num_slices
               << " slices of " << options.num_stages << " stages\n"
               << told(job));
  REQUIRE(expected.ended_well());
  CHECK(expected.problems().empty());
  CHECK(expected.generation() == 1);
  CHECK(job.failure() == "");
  // Nothing in it hangs.
  auto is_kill = [](const std::string& line) { return line.starts_with("agent kills"); };
  CHECK(std::ranges::none_of(job.history(), is_kill));
  REQUIRE(job.ended_well());
  CHECK(job.problems().empty());
  // An actor of io that fails may cost one only if another failure makes its work matter to a restore.
  if (options.num_io_failures == 0 || options.num_failures == 0)
    CHECK(job.generation() <= 1 + job.history().size());
  for (const auto& [index, result] : expected.results()) {
    INFO("call " << index);
    const auto& mine = job.results().at(index);
    CHECK(mine.steps_done == result.steps_done);
    CHECK(mine.weights_sha256 == result.weights_sha256);
    CHECK(mine.metrics == result.metrics);
  }
  for (const auto& [step, metrics] : job.steps()) CHECK(expected.steps().at(step) == metrics);
}

}  // namespace

TEST_CASE("every process gets the same results whatever fails at any moment") {
  auto seed = GENERATE(range(0u, 400u));
  explore(example_job(seed));
}

TEST_CASE("with snapshots on disk every process gets the same results whatever fails at any moment") {
  auto seed = GENERATE(range(1000u, 1060u));
  temp_folder folder;
  auto options = example_job(seed);
  options.folder = folder.path();
  explore(options);
}

TEST_CASE("loaders, peer copy stores and snapshot writers that fail cost no generation, and change no bit") {
  auto seed = GENERATE(range(2000u, 2100u));
  temp_folder folder;
  auto options = example_job(seed);
  options.folder = folder.path();
  options.num_failures = 0;
  options.num_io_failures = 3;
  explore(options);  // no more generations than failures of other kinds
}

TEST_CASE("each generation may give devices to other members, and no bit changes whatever fails") {
  auto seed = GENERATE(range(4000u, 4300u));
  temp_folder folder;
  auto options = example_job(seed);
  if (seed % 3 == 0) options.folder = folder.path();
  options.num_failures = 5;
  options.moves_devices = true;
  explore(options);
}

TEST_CASE("slices of a model have parts of their own, and get these back whatever fails at any moment") {
  auto seed = GENERATE(range(9000u, 9150u));
  temp_folder folder;
  auto options = example_job(seed);
  options.num_slices = 2;
  options.num_stages = std::min(options.num_stages, 6);  // with more, and replicas, the weights overflow
  options.num_replicas = 1 + static_cast<int>(seed % 2);
  if (seed % 3 == 0) options.folder = folder.path();
  if (seed % 4 == 0)
    options.contents.assign(static_cast<std::size_t>(options.num_stages), layout::replica_content::equal);
  options.num_failures = 5;
  options.moves_devices = seed % 2 == 0;
  explore(options);
}

TEST_CASE(
    "steps in two calls give the same results whatever fails at any moment, and wherever they are paused") {
  auto seed = GENERATE(range(5000u, 5100u));
  temp_folder folder;
  auto options = example_job(seed);
  options.calls = calls_with_half_steps();
  if (seed % 3 == 0) options.folder = folder.path();
  if (seed % 2 == 0) options.num_pause_requests = 6;
  options.moves_devices = seed % 5 == 0;
  options.memory_every_steps = seed % 4;
  if (options.num_stages <= 5) {
    auto& members = options.reductions.emplace_back().stages;
    for (int stage = 0; stage < options.num_stages; ++stage) members.push_back(stage);
  }
  explore(options);
}

TEST_CASE("replicas that hold stages alike stand in for each other, whatever fails at any moment") {
  auto seed = GENERATE(range(6000u, 6400u));
  temp_folder folder;
  auto options = example_job(seed);
  std::mt19937 random(seed);
  options.num_replicas = 2 + static_cast<int>(random() % 2);
  options.num_stages = 1 + static_cast<int>(random() % 3);
  for (int stage = 0; stage < options.num_stages; ++stage)
    options.contents.push_back(random() % 4 == 0 ? layout::replica_content::own
                                                 : layout::replica_content::equal);
  if (seed % 3 == 0) options.folder = folder.path();
  if (seed % 4 == 0) options.calls = calls_with_half_steps();
  options.moves_devices = seed % 5 == 0;
  options.memory_every_steps = seed % 3;
  options.num_io_failures = seed % 7 == 0 ? 2 : 0;
  explore(options);
}

TEST_CASE("they may fail beside all that fails") {
  auto seed = GENERATE(range(3000u, 3200u));
  temp_folder folder;
  auto options = example_job(seed);
  if (seed % 2) options.folder = folder.path();
  options.num_io_failures = 4;
  explore(options);
}

TEST_CASE(
    "a job with reductions that is paused, taken further and fenced at any moment hangs nowhere, loses no "
    "process for it, and computes the same") {
  auto seed = GENERATE(range(4000u, 4300u));
  auto options = example_job(seed);
  std::mt19937 random(seed);
  // With more stages the summed gradients grow beyond all limits.
  if (options.num_stages > 5) {
    options.devices_per_rank = 1;
    options.num_stages = options.world_size + 1;
  }
  for (int number = 0; number < 2; ++number) {
    auto& members = options.reductions.emplace_back().stages;
    for (int stage = 0; stage < options.num_stages; ++stage)
      if (stage == 0 || random() % 3 != 0) members.push_back(stage);
  }
  if (seed % 3 == 0) options.num_failures = 0;
  options.num_pause_requests = 12;
  options.progress_timeout = std::chrono::seconds(1);
  explore(options);
}
