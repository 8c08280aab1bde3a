#include "recovery_text.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

using namespace troupe;
using Catch::Matchers::StartsWith;

namespace {

cluster::recovery_report example() {
  cluster::recovery_report report;
  report.generation = 4;
  report.loss = {2, "killed by SIGKILL"};
  report.detect_s = report.fence_s = 0.001;
  report.quiesce_s = report.rebuild_s = 0.010;
  report.respawn_s = 0.250;
  report.restore_s = report.replay_s = 0.020;
  report.total_s = 0.312;
  return report;
}

}  // namespace

TEST_CASE("a recovery is one line with the rank, the cause, the step and the time of each phase") {
  CHECK(recovery_line(example(), {example().loss}, 117, 3, true) ==
        "rank 2 was killed by SIGKILL at step 117; next step done after 0.312 s (detect 0.001, fence 0.001, "
        "quiesce "
        "0.010, respawn 0.250, restore 0.020, rebuild 0.010, replay 0.020), 3 other processes kept running");
  CHECK(recovery_line(example(), {example().loss}, 117, 1, true).ends_with(", 1 other process kept running"));
}

TEST_CASE("the recovery of a job that does no step, since it is paused, does not speak of one") {
  CHECK_THAT(recovery_line(example(), {example().loss}, 117, 3, false),
             StartsWith("rank 2 was killed by SIGKILL at step 117; restored, with no step done since, after "
                        "0.312 s (detect"));
}

TEST_CASE("losses read as sentences") {
  CHECK(describe_loss({1, "exit code 3"}) == "rank 1 ended with exit code 3");
  CHECK(describe_loss({1, "killed by SIGKILL"}) == "rank 1 was killed by SIGKILL");
  CHECK(describe_loss({1, "ended by SIGSEGV (segmentation fault)"}) ==
        "rank 1 was ended by SIGSEGV (segmentation fault)");
  CHECK(describe_loss({-1, "rank 1: not a number"}) == "an actor failed (rank 1: not a number)");
}

TEST_CASE("losses of one cause are one sentence, and all of them are named") {
  std::string killed = "killed by SIGKILL";
  CHECK(describe_losses({{2, killed}, {3, killed}}) == "ranks 2 and 3 were killed by SIGKILL");
  CHECK(describe_losses({{0, killed}, {1, "exit code 3"}, {2, killed}, {5, killed}}) ==
        "ranks 0, 2 and 5 were killed by SIGKILL and rank 1 ended with exit code 3");
  CHECK(describe_losses({{1, "exit code 3"}, {2, "exit code 3"}}) == "ranks 1 and 2 ended with exit code 3");
  CHECK(describe_losses({{-1, "no memory"}, {2, killed}}) ==
        "an actor failed (no memory) and rank 2 was killed by SIGKILL");
}

TEST_CASE("a recovery from several losses is counted from the first, and has them all") {
  std::vector<cluster::member_loss> losses = {{1, "exit code 3"}, example().loss};
  CHECK_THAT(
      recovery_line(example(), losses, 117, 2, true),
      StartsWith("rank 1 ended with exit code 3 and rank 2 was killed by SIGKILL at step 117; next step"));
  auto event = nlohmann::json::parse(recovery_json(example(), losses, 117, 2));
  CHECK(event["rank"] == 2);
  CHECK(event["losses"][0] == nlohmann::json{{"rank", 1}, {"cause", "exit code 3"}});
  CHECK(event["losses"][1] == nlohmann::json{{"rank", 2}, {"cause", "killed by SIGKILL"}});
}

TEST_CASE("the JSON form is one line with every phase, whatever the cause's text") {
  auto report = example();
  report.loss.cause = "said \"no\"\n\xff";
  auto text = recovery_json(report, {report.loss}, 117, 3);
  CHECK(text.find('\n') == std::string::npos);
  CHECK(text.starts_with("{\"event\":\"recovery\",\"rank\":2,\"seconds\":0.312,"));
  auto event = nlohmann::json::parse(text);
  CHECK(event["step"] == 117);
  CHECK(event["replay"] == 0.020);
}
