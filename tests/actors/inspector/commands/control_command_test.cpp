#include "troupe/inspector/commands/control_command.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>

using namespace troupe;
using namespace troupe::actors::inspector;
using Catch::Matchers::ContainsSubstring;

namespace {

control_command command_of(const std::string& name, const std::string& body) {
  auto read = control_command_from(name, body);
  if (const auto* why = std::get_if<control_refusal>(&read)) FAIL(why->why);
  return std::get<control_command>(read);
}

control_refusal refusal_of(const std::string& name, const std::string& body) {
  auto read = control_command_from(name, body);
  REQUIRE(std::holds_alternative<control_refusal>(read));
  return std::get<control_refusal>(read);
}

}  // namespace

TEST_CASE("every command of the API is read") {
  CHECK(command_of("pause", "{}").action == control_action::pause);
  CHECK(command_of("resume", " {} ").action == control_action::resume);
  CHECK(command_of("snapshot", "{}").action == control_action::snapshot);
  auto step = command_of("step", R"({"unit":"microbatch","count":3})");
  CHECK(step.unit == step_unit::microbatch);
  CHECK(step.count == 3);
  CHECK(command_of("log_level", R"({"level":"debug"})").level == "debug");
  CHECK(command_of("kill", R"({"rank":2})").rank == 2);
  auto restart = command_of("restart", R"({"actor":"0#0/device/1"})");
  CHECK(restart.actor == "0#0/device/1");
  CHECK_FALSE(restart.rank);
}

TEST_CASE("an unknown command is refused with those that there are") {
  auto refused = refusal_of("stop", "{}");
  CHECK(refused.status == 404);
  CHECK_THAT(refused.why, ContainsSubstring("pause, resume, step") && ContainsSubstring("\"stop\""));
}

TEST_CASE("a body that is no object of the right form is refused, and says what was expected and came") {
  auto [name, body, expected] = GENERATE(table<std::string, std::string, std::string>({
      {"pause", "", "none that can be read"},
      {"pause", "{", "none that can be read"},
      {"pause", "[]", "got []"},
      {"pause", "null", "got null"},
      {"pause", R"({"now":true})", "an empty object {}, got the key \"now\""},
      {"step", "{}", "'unit' is missing"},
      {"step", R"({"unit":"step"})", "'count' is missing"},
      {"step", R"({"unit":"epoch","count":1})", "one of action, microbatch, step as 'unit', got \"epoch\""},
      {"step", R"({"unit":"step","count":0})", "from 1 to 1000000000 as 'count', got 0"},
      {"step", R"({"unit":"action","count":1001})", "from 1 to 1000 as 'count', got 1001"},
      {"step", R"({"unit":"step","count":-1})", "got -1"},
      {"step", R"({"unit":"step","count":1.5})", "got 1.5"},
      {"step", R"({"unit":"step","count":"1"})", "got \"1\""},
      {"step", R"({"unit":"step","count":1,"count":2})", "each key once, got \"count\" twice"},
      {"step", R"({"unit":"step","count":1,"more":2})", "got the key \"more\""},
      {"log_level", R"({"level":"loud"})", "one of trace, debug, info, warn, error"},
      {"log_level", R"({"level":"off"})", "got \"off\""},
      {"kill", "{}", "expected either"},
      {"kill", R"({"rank":1,"actor":"0#0/device/1"})", "expected either"},
      {"kill", R"({"rank":-1})", "as 'rank', got -1"},
      {"kill", R"({"rank":99999999999})", "as 'rank', got 99999999999"},
      {"restart", R"({"actor":7})", "an id of /api/v1/actors as 'actor', got 7"},
      {"restart", R"({"actor":""})", "an id of /api/v1/actors"},
  }));
  INFO(name << " " << body);
  auto refused = refusal_of(name, body);
  CHECK(refused.status == 400);
  CHECK_THAT(refused.why, ContainsSubstring(name + ": expected") && ContainsSubstring(expected));
}

TEST_CASE("a refusal shows a bounded part of what came, in ASCII") {
  auto refused = refusal_of("log_level", R"({"level":")" + std::string(3000, 'x') + "\"}");
  CHECK(refused.why.size() < 250);
  auto bytes = refusal_of("log_level", "{\"level\":\"\xc3\xa4\"}").why;
  CHECK_THAT(bytes, ContainsSubstring("\\u00e4"));
  CHECK(refusal_of("log_level", "{\"level\":\"\xff\"}").status == 400);
}
