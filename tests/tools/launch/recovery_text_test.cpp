#include "recovery_text.hpp"

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

using namespace troupe;

namespace {

recovery_report example() {
  recovery_report report;
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
  CHECK(recovery_line(example(), 117, 3) ==
        "rank 2 was killed by SIGKILL at step 117; next step done after 0.312 s (detect 0.001, fence 0.001, "
        "quiesce "
        "0.010, respawn 0.250, restore 0.020, rebuild 0.010, replay 0.020), 3 other processes kept running");
  CHECK(recovery_line(example(), 117, 1).ends_with(", 1 other process kept running"));
}

TEST_CASE("losses read as sentences") {
  CHECK(describe_loss({1, "exit code 3"}) == "rank 1 ended with exit code 3");
  CHECK(describe_loss({1, "killed by SIGKILL"}) == "rank 1 was killed by SIGKILL");
  CHECK(describe_loss({1, "ended by SIGSEGV (segmentation fault)"}) ==
        "rank 1 was ended by SIGSEGV (segmentation fault)");
  CHECK(describe_loss({-1, "rank 1: not a number"}) == "an actor failed (rank 1: not a number)");
}

TEST_CASE("the JSON form is one line with every phase, whatever the cause's text") {
  auto report = example();
  report.loss.cause = "said \"no\"\n\xff";
  auto text = recovery_json(report, 117, 3);
  CHECK(text.find('\n') == std::string::npos);
  CHECK(text.starts_with("{\"event\":\"recovery\",\"rank\":2,\"seconds\":0.312,"));
  auto event = nlohmann::json::parse(text);
  CHECK(event["step"] == 117);
  CHECK(event["replay"] == 0.020);
}
