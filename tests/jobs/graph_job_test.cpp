// Jobs of several processes that train a graph whose values skip stages: the same bits as in one process,
// also when processes are killed.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <map>
#include <set>

#include "jobs/worker_job.hpp"
#include "support/temp_folder.hpp"

using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

process_result run_graph(int num_processes, const words& options, int steps = 12) {
  words command = {GRAPH_WORKER, "--steps", std::to_string(steps)};
  if (std::ranges::find(options, "--microbatches") == options.end())
    command.insert(command.end(), {"--microbatches", "4"});
  return run_process(worker_job(num_processes, join(command, options)));
}

const values_by_key& reference_graph() {
  static const auto all = printed_by(run_graph(1, {"--cut", "no", "--stages", "1"})).values;
  return all;
}

void check_same_graph(const process_result& result) {
  INFO(result.output << result.errors);
  REQUIRE(result.exit_code == 0);
  REQUIRE(reference_graph().size() == 5);
  CHECK(printed_by(result).values == reference_graph());
}

}  // namespace

TEST_CASE("a graph over three processes and four stages gives the bits of one process and one stage",
          "[graph]") {
  check_same_graph(run_graph(1, {"--devices", "3"}));
  check_same_graph(run_graph(3, {}));
  check_same_graph(run_graph(3, {"--schedule", "gpipe", "--cut", "no", "--stages", "4"}));
}

TEST_CASE("any rank may be killed while a graph is trained: the bits are the same", "[graph]") {
  auto rank = GENERATE(0, 1, 2);
  auto result = run_graph(3, {"--fault", "apply@rank=" + std::to_string(rank) + ",step=7"});
  check_same_graph(result);
  CHECK_THAT(result.errors, ContainsSubstring("was killed by SIGKILL"));
}

TEST_CASE("replicas with running statistics of their own give the bits of one process, whatever is lost",
          "[graph]") {
  words replicas = {"--replicas", "2", "--microbatches", "2"};
  auto with = [&](words more) {
    more.insert(more.begin(), replicas.begin(), replicas.end());
    return more;
  };
  auto expected = printed_by(run_graph(1, with({"--cut", "no", "--stages", "1"}))).values;
  REQUIRE(expected.size() == 5);
  for (int lost : {0, 1, 2, 3}) {
    temp_folder folder;
    auto result = run_graph(4, with({"--cut", "no", "--stages", "2", "--snapshot-every", "2", "--disk-every",
                                     "4", "--snapshot-dir", folder.path().string(), "--fault",
                                     "apply@rank=" + std::to_string(lost) + ",step=7"}));
    INFO("lost " << lost << "\n" << result.output << result.errors);
    REQUIRE(result.exit_code == 0);
    CHECK(printed_by(result).values == expected);
  }
}

TEST_CASE("a graph resumes from its snapshot, with other cuts too", "[graph]") {
  temp_folder folder;
  auto in_folder = [&](words more, int steps = 12) {
    more.insert(more.end(), {"--snapshot-dir", folder.path().string()});
    return run_graph(1, more, steps);
  };
  REQUIRE(in_folder({}, 5).exit_code == 0);
  REQUIRE(in_folder({"--resume"}, 8).exit_code == 0);
  check_same_graph(in_folder({"--resume", "--cut", "no", "--stages", "4"}));
}

namespace {

/// Jobs of `model` over 2 and 4 processes, with and without replicas, of which each in turn is killed within
/// the second fit or, of the first process, at the end of the first one.
void check_kills(const std::string& model) {
  auto with = [&model](words more) {
    more.insert(more.begin(), {"--model", model, "--snapshot-every", "2"});
    return more;
  };
  constexpr int steps_of_a_fit = 6;
  auto run = [&](int processes, const words& options) {
    return run_graph(processes, with(options), steps_of_a_fit);
  };
  for (const auto& replicas : {words{}, words{"--replicas", "2", "--microbatches", "2"}}) {
    auto with_replicas = [&replicas](words more) {
      more.insert(more.end(), replicas.begin(), replicas.end());
      return more;
    };
    auto expected = printed_by(run(1, with_replicas({"--cut", "no", "--stages", "1"}))).values;
    REQUIRE(expected.size() == 5);
    auto check = [&](const process_result& result) {
      INFO(model << "\n" << result.output << result.errors);
      REQUIRE(result.exit_code == 0);
      CHECK(printed_by(result).values == expected);
    };
    check(run(replicas.empty() ? 4 : 2, with_replicas({"--schedule", "zb_h1"})));
    for (int lost : replicas.empty() ? std::vector{0, 2} : std::vector{1, 3}) {
      auto fault = "apply@rank=" + std::to_string(lost) + ",step=" + (lost == 0 ? "5" : "8");
      auto result = run(4, with_replicas({"--fault", fault}));
      check(result);
      CHECK_THAT(result.errors, ContainsSubstring("was killed by SIGKILL"));
    }
    check(run(2, with_replicas({"--cut", "no", "--stages", "2", "--fault", "backward@rank=1,step=9"})));
  }
}

}  // namespace

TEST_CASE("layers in evaluation mode stay so in jobs, over evaluations, kills, other cuts and resumptions",
          "[graph]") {
  check_kills("modes");
  temp_folder folder;
  auto in_folder = [&](words more, int processes, int steps_of_a_fit) {
    more.insert(more.end(), {"--model", "modes", "--snapshot-dir", folder.path().string()});
    return run_graph(processes, more, steps_of_a_fit);
  };
  REQUIRE(in_folder({}, 2, 5).exit_code == 0);
  auto resumed = in_folder({"--resume", "--cut", "no", "--stages", "4"}, 1, 7);
  INFO(resumed.output << resumed.errors);
  REQUIRE(resumed.exit_code == 0);
  CHECK(printed_by(resumed).values ==
        printed_by(run_graph(1, {"--model", "modes", "--cut", "no", "--stages", "1"}, 7)).values);
}

TEST_CASE("values without gradients cross processes that are killed: the bits of one process", "[graph]") {
  check_kills(GENERATE("tokens", "bool_mask", "learns_sometimes", "nothing_behind_it"));
}

TEST_CASE("all kinds of values without gradients cross processes that are killed", "[.soak][graph]") {
  check_kills(GENERATE("mask", "sent_detached", "received_detached", "both_uses", "detached_twice"));
}
