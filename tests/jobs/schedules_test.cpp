// Every schedule, hosted in one process or several, with everything that stages combine, and with failures in
// each kind of action: the bits of one process with one stage that accumulates the same microbatches.
#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <map>
#include <set>

#include "jobs/job.hpp"
#include "support/temp_folder.hpp"

using namespace troupe::testing;

namespace {

/// What is varied. The first value of each is the default.
const std::vector<words> factors = {
    {"1f1b", "gpipe", "interleaved_1f1b", "zb_h1", "zb_h2", "zb_v", "dualpipe_v", "looped_bfs"},
    {"1", "2", "4"},                                           // processes
    {"f32", "f32 clipped", "f16 clipped"},                     // of a GPT with tied weights
    {"", "checkpointed"},                                      // its blocks
    {"", "forward", "backward", "weight", "reduce", "apply"},  // where a process is killed
};

/// An index into each of `factors`.
using combination = std::vector<std::size_t>;

const std::string& value_of(const combination& of, std::size_t factor) { return factors[factor][of[factor]]; }

/// Whether the failure can come about: not all schedules have W apart from I.
bool is_possible(const combination& of) {
  const std::set<std::string> in_two{"zb_h1", "zb_h2", "zb_v", "dualpipe_v"};
  return value_of(of, 4) != "weight" || in_two.contains(value_of(of, 0));
}

std::vector<combination> all_combinations() {
  std::vector<combination> all{{}};
  for (const auto& values : factors) {
    std::vector<combination> longer;
    for (const auto& each : all)
      for (std::size_t i = 0; i < values.size(); ++i) {
        longer.push_back(each);
        longer.back().push_back(i);
      }
    all = std::move(longer);
  }
  std::erase_if(all, [](const combination& each) { return !is_possible(each); });
  return all;
}

using value_pair = std::pair<std::pair<std::size_t, std::size_t>, std::pair<std::size_t, std::size_t>>;

std::set<value_pair> pairs_of(const combination& of) {
  std::set<value_pair> pairs;
  for (std::size_t a = 0; a < of.size(); ++a)
    for (std::size_t b = a + 1; b < of.size(); ++b) pairs.insert({{a, of[a]}, {b, of[b]}});
  return pairs;
}

/// Some of all combinations, in which any two values that are possible together stand together: the one with
/// most new pairs, again and again.
std::vector<combination> pairwise() {
  auto all = all_combinations();
  std::set<value_pair> missing;
  for (const auto& each : all) missing.merge(pairs_of(each));
  std::vector<combination> chosen;
  while (!missing.empty()) {
    const combination* best = nullptr;
    std::size_t most = 0;
    for (const auto& each : all) {
      std::size_t num_new = 0;
      for (const auto& pair : pairs_of(each)) num_new += missing.count(pair);
      if (num_new > most) most = num_new, best = &each;
    }
    for (const auto& pair : pairs_of(*best)) missing.erase(pair);
    chosen.push_back(*best);
  }
  return chosen;
}

/// 12 steps of a GPT whose embedding and head share their weights.
words job_of(const combination& of) {
  words options = {"--size", "tiny", "--steps", "12", "--batch", "8", "--microbatches", "4"};
  auto add = [&options](const words& more) { options.insert(options.end(), more.begin(), more.end()); };
  if (value_of(of, 2) != "f32") add({"--clip-grad-norm", "0.5"});
  // The loss scale is too large at first, so that all stages skip steps.
  if (value_of(of, 2) == "f16 clipped") add({"--precision", "f16", "--loss-scale", "268435456"});
  return options;
}

/// Of one process, one device and one stage; computed once for each kind of numbers.
const job_bits& expected_bits(const combination& of) {
  static std::map<std::string, job_bits> known;
  auto [found, is_new] = known.try_emplace(value_of(of, 2));
  if (is_new) found->second = bits_of(run_local(job_of(of), example::gpt));
  return found->second;
}

/// Four stages. Where the schedule gives each device two of them, two of four processes have no device.
job_outcome run_combination(const combination& of, const temp_folder& folder) {
  auto options = job_of(of);
  auto add = [&options](const words& more) { options.insert(options.end(), more.begin(), more.end()); };
  auto num_processes = std::stoi(value_of(of, 1));
  add({"--schedule", value_of(of, 0), "--stages", "4"});
  if (num_processes == 1) add({"--devices", "2"});
  if (value_of(of, 3) == "checkpointed") add({"--checkpoint-blocks", "yes"});
  const auto& point = value_of(of, 4);
  // The only process of a job is not killed: its actor fails.
  if (!point.empty())
    add({"--snapshot-every", "2", "--disk-every", "4", "--snapshot-dir",
         (folder.path() / "snapshots").string(), "--fault",
         point + (num_processes == 1 ? ":fail" : "") + "@rank=0,step=7"});
  return num_processes == 1 ? run_local(options, example::gpt)
                            : run_launched(num_processes, options, {}, example::gpt);
}

void check_same_bits(const std::vector<combination>& combinations) {
  for (const auto& each : combinations) {
    temp_folder folder;
    auto outcome = run_combination(each, folder);
    INFO(value_of(each, 0) << ", " << value_of(each, 1) << " processes, " << value_of(each, 2) << ' '
                           << value_of(each, 3) << ", killed: " << value_of(each, 4));
    INFO(outcome.process.errors);
    auto seen = bits_of(outcome), expected = expected_bits(each);
    CHECK(seen.weights_sha256 == expected.weights_sha256);
    if (value_of(each, 4).empty()) CHECK(seen.losses == expected.losses);
    bool must_recover = !value_of(each, 4).empty() && value_of(each, 1) != "1";
    CHECK(outcome.named("recovery").size() == (must_recover ? 1U : 0U));
  }
}

}  // namespace

TEST_CASE("any two of schedule, hosting, numbers, checkpointing and failure give the bits of one stage",
          "[schedules]") {
  auto chosen = pairwise();
  CHECK(chosen.size() >= 35);  // each schedule with most failures
  check_same_bits(chosen);
}

TEST_CASE("plans that PyTorch wrote are run, with the bits of one stage", "[schedules]") {
  const combination plain{0, 0, 2, 0, 0};  // combines gradients of stages, which the files know nothing of
  for (const char* name : {"dualpipe_v_p2_m4.csv", "interleaved_zero_bubble_p2_v2_m4.csv"}) {
    INFO(name);
    auto options = job_of(plain);
    options.insert(options.end(), {"--plan", PYTORCH_PLANS + std::string("/") + name});
    auto local = options;
    local.insert(local.end(), {"--devices", "2"});
    CHECK(bits_of(run_local(local, example::gpt)) == expected_bits(plain));
    CHECK(bits_of(run_launched(2, options, {}, example::gpt)) == expected_bits(plain));
  }
}

TEST_CASE(
    "a plan whose backwards come in descending order has bits of its own, those of one stage that does so",
    "[schedules]") {
  const combination plain{0, 0, 2, 0, 0};
  temp_folder folder;
  auto one_stage = folder.path() / "one_stage.csv";
  std::ofstream(one_stage) << "0F0,0F1,0F2,0F3,0B3,0B2,0B1,0B0\n";
  auto with_plan = [&](const std::string& plan, const words& more = {}) {
    auto options = job_of(plain);
    options.insert(options.end(), {"--plan", plan, "--log-level", "warn"});
    options.insert(options.end(), more.begin(), more.end());
    return options;
  };
  auto expected = bits_of(run_local(with_plan(one_stage.string()), example::gpt));
  CHECK(expected.weights_sha256 != expected_bits(plain).weights_sha256);
  auto of_pytorch = PYTORCH_PLANS + std::string("/looped_bfs_p2_v2_m4.csv");
  auto local = run_local(with_plan(of_pytorch, {"--devices", "2"}), example::gpt);
  CHECK(bits_of(local) == expected);
  CHECK(local.process.errors.find("in descending order of microbatches") != std::string::npos);
  CHECK(bits_of(run_launched(2, with_plan(of_pytorch), {}, example::gpt)) == expected);
  auto snapshots = (folder.path() / "snapshots").string();
  auto killed =
      run_launched(2,
                   with_plan(of_pytorch, {"--snapshot-every", "2", "--disk-every", "4", "--snapshot-dir",
                                          snapshots, "--fault", "backward@rank=1,step=7"}),
                   {}, example::gpt);
  CHECK(bits_of(killed).weights_sha256 == expected.weights_sha256);
  CHECK(killed.named("recovery").size() == 1);
  // The order is part of what a snapshot belongs to.
  auto other = job_of(plain);
  other.insert(other.end(), {"--resume", "--snapshot-dir", snapshots});
  other.insert(other.begin(), GPT_PROGRAM);
  auto refused = run_process({.command = other, .environment = {}, .without = {"RANK", "WORLD_SIZE"}});
  CHECK(refused.exit_code == 2);
  CHECK(refused.errors.find("gradient_order has the default value, the snapshot has descending") !=
        std::string::npos);
}

TEST_CASE("replicas run a plan whose backwards come in descending order, with the bits of one process",
          "[schedules]") {
  const combination plain{0, 0, 0, 0, 0};
  auto options = job_of(plain);
  options.insert(options.end(),
                 {"--replicas", "2", "--plan", PYTORCH_PLANS + std::string("/looped_bfs_p2_v2_m4.csv")});
  auto local = options;
  local.insert(local.end(), {"--devices", "4"});
  auto expected = bits_of(run_local(local, example::gpt));
  options.insert(options.end(), {"--snapshot-every", "2", "--fault", "apply@rank=2,step=7"});
  CHECK(bits_of(run_launched(4, options, {}, example::gpt)).weights_sha256 == expected.weights_sha256);
}

TEST_CASE("all of schedule, hosting, numbers, checkpointing and failure give the bits of one stage",
          "[.soak][schedules]") {
  check_same_bits(all_combinations());
}
