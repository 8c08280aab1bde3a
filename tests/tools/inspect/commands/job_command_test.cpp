#include "inspect/commands/job_command.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "troupe/error/errors.hpp"

using namespace troupe;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using json = nlohmann::ordered_json;

namespace {

void check_refused(const command_words& words, const std::string& why) {
  CHECK_THROWS_MATCHES(command_from(words), bad_input, MessageMatches(ContainsSubstring(why)));
}

}  // namespace

TEST_CASE("what is typed becomes the body of a command") {
  CHECK(command_from({.action = "pause"}).body.dump() == "{}");
  CHECK(command_from({.action = "step"}).body.dump() == R"({"unit":"step","count":1})");
  CHECK(command_from({.action = "step", .unit = "action", .count = 7}).body.dump() ==
        R"({"unit":"action","count":7})");
  CHECK(command_from({.action = "log_level", .level = "debug"}).body.dump() == R"({"level":"debug"})");
  CHECK(command_from({.action = "kill", .actor = "0#0/device/0"}).body.dump() ==
        R"({"actor":"0#0/device/0"})");
  CHECK(command_from({.action = "restart", .rank = 3}).body.dump() == R"({"rank":3})");
}

TEST_CASE("a command that there is not, and options that are missing or another command's, are refused") {
  check_refused({.action = "stop"}, "expected one of pause, resume, step");
  check_refused({.action = "step", .count = 0},
                "expected --count from 1 to 1000000000 with --unit step, got 0");
  check_refused({.action = "step", .unit = "action", .count = 1001},
                "expected --count from 1 to 1000 with --unit action, got 1001");
  check_refused({.action = "pause", .count = 2}, "expected --count with step only, got it with pause");
  check_refused({.action = "step", .unit = "epoch"},
                "expected --unit step, microbatch or action with step, got 'epoch'");
  check_refused({.action = "snapshot", .unit = "step"}, "--unit with step only");
  check_refused({.action = "step", .level = "info"}, "--level with log_level only");
  check_refused({.action = "resume", .actor = "0#0/device/0"}, "--actor with restart, kill only");
  check_refused({.action = "step", .rank = 0}, "--rank with restart, kill only");
  check_refused({.action = "log_level"}, "expected --level trace, debug");
  check_refused({.action = "kill"},
                "either --actor ID (of /api/v1/actors) or --rank R with kill, got neither");
  check_refused({.action = "kill", .actor = "0#0/device/0", .rank = 0}, "got both");
}

TEST_CASE("commands are told in words") {
  auto deed = [](const command_words& words) { return command_from(words).deed(); };
  CHECK(deed({.action = "pause"}) == "pause the job");
  CHECK(deed({.action = "resume"}) == "let the job go on");
  CHECK(deed({.action = "step"}) == "let the job do 1 optimizer step and pause after it");
  CHECK(deed({.action = "step", .unit = "microbatch", .count = 2}) ==
        "let the job do 2 microbatches and pause after it");
  CHECK(deed({.action = "snapshot"}) == "write a snapshot");
  CHECK(deed({.action = "log_level", .level = "warn"}) == "log from warn on in all processes");
  CHECK(deed({.action = "kill", .actor = "1#0/stage/1"}) == "kill 1#0/stage/1, as if it had failed");
  CHECK(deed({.action = "kill", .rank = 1}) == "kill the process of rank 1 with SIGKILL");
  CHECK(deed({.action = "restart", .rank = 1}) == "restart the process of rank 1, which ends cleanly");
  CHECK(command_from({.action = "restart", .actor = "a\x1b[2J"}).name() == "restart a?[2J");
}

TEST_CASE("an answer is an id, or why there is none") {
  auto command = command_from({.action = "pause"});
  CHECK(command_answer_from(command, 202, R"({"id":"0-1","action":"pause"})").id == "0-1");
  auto refused = command_answer_from(command, 409, R"({"error":"no folder"})");
  CHECK(refused.id.empty());
  CHECK(refused.problem == "no folder");
  CHECK(command_answer_from(command, 502, "<html>").problem == "status 502: <html>");
  CHECK(command_answer_from(command, 202, "[]").problem == "status 202: []");
}

TEST_CASE("a command's row tells what became of it") {
  auto rows = json::parse(R"([7,{"id":"0-1","outcome":"done","text":"the job goes on"},
    {"id":"0-2","outcome":null,"text":null},{"id":"0-3","outcome":"refused","text":"no folder"}])");
  CHECK(command_row(rows, "0-4") == nullptr);
  CHECK(outcome_of(*command_row(rows, "0-2")).empty());
  CHECK(outcome_line({"resume"}, *command_row(rows, "0-1")).text == "resume: done: the job goes on");
  auto refused = outcome_line({"snapshot"}, *command_row(rows, "0-3"));
  CHECK(refused.text == "snapshot: refused: no folder");
  CHECK(refused.style == row_style::bad);
}
