// Commands over HTTP: what is taken, what is refused, and that both are in the audit log.
#include <spdlog/sinks/ostream_sink.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "actors/inspector/shown_job.hpp"
#include "support/schema.hpp"
#include "troupe/inspector/inspector_routes.hpp"
#include "troupe/posix/unix_time.hpp"

using namespace troupe;
using namespace troupe::actors::inspector;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;
using json = nlohmann::json;

namespace {

const std::string token = "the-token-of-the-job";
using header = std::pair<std::string, std::string>;

/// A row of /api/v1/commands, with its keys in the order of the answer.
std::string command_text(const json& row) {
  nlohmann::ordered_json text;
  for (const char* key : {"id", "action", "target", "rank", "outcome", "text", "step", "at_ms"})
    if (row.contains(key)) text[key] = nlohmann::ordered_json::parse(row[key].dump());
  return text.dump();
}

/// A server's routes whose commands are taken by the test.
struct commanded_server {
  commanded_server() {
    auto view = shown_job();
    view.at_ms = posix::unix_now_ms();
    job->publish(view);
    job->take_commands(commands);
    commands->on_post([this] { ++num_posted; });
  }
  http::http_response post(const std::string& action, const std::string& body,
                           const header& type = {"content-type", "application/json"}) {
    http::http_request request{"POST", "/api/v1/control/" + action, {}, body, "127.0.0.1:5"};
    request.headers = {{"host", "localhost"},
                       {"authorization", "Bearer " + token},
                       {"x-troupe-request", "1"},
                       {"user-agent", "test"},
                       type};
    return routes.answer(request);
  }
  std::string error(const http::http_response& answer) { return json::parse(answer.body)["error"]; }

  std::ostringstream text;
  std::shared_ptr<spdlog::logger> log =
      std::make_shared<spdlog::logger>("log", std::make_shared<spdlog::sinks::ostream_sink_st>(text));
  std::shared_ptr<inspected_job> job = std::make_shared<inspected_job>("job-7");
  std::shared_ptr<open_commands> commands = std::make_shared<open_commands>();
  std::shared_ptr<audit_log> audit = std::make_shared<audit_log>(audit_options{}, log);
  int num_posted = 0;
  inspector_routes routes{
      {token, "session", "troupe_1", {"/", "/healthz"}, {}},
      {job, nullptr, nullptr, std::make_shared<control_intake>(job, audit, control_rules{true, 16}, 2)}};
};

}  // namespace

TEST_CASE("a command is taken, posted once, and kept in the audit log") {
  commanded_server one;
  auto answer = one.post("kill", R"({"actor":"1#1/device/1"})");
  CHECK(answer.status == 202);
  CHECK(answer.content_type == "application/json");
  auto taken = json::parse(answer.body);
  CHECK(taken["id"] == "2-1");
  CHECK(taken["action"] == "kill");
  CHECK(taken["target"] == "device 1 of rank 1");
  CHECK(one.num_posted == 1);
  REQUIRE(one.commands->all().size() == 1);
  CHECK(one.commands->all()[0].id == "2-1");
  CHECK_THAT(one.text.str(), ContainsSubstring(R"("id":"2-1","action":"kill","caller":"127.0.0.1:5")") &&
                                 ContainsSubstring(R"("by":"bearer","user_agent":"test")"));
  CHECK(json::parse(one.post("pause", "{}").body)["id"] == "2-2");
}

TEST_CASE("a command that is refused is in the audit log, and is not posted") {
  commanded_server one;
  CHECK(one.post("stop", "{}").status == 404);
  CHECK(one.post("pause", "{\"now\":1}").status == 400);
  CHECK(one.post("kill", R"({"rank":9})").status == 404);
  auto refused = one.post("kill", R"({"actor":"0#0/loader/0"})");
  CHECK(refused.status == 409);
  CHECK_THAT(one.error(refused), ContainsSubstring("kill: '0#0/loader/0' is not running"));
  CHECK(one.num_posted == 0);
  CHECK(one.commands->all().empty());
  for (const char* status : {"\"status\":404", "\"status\":400", "\"status\":409"})
    CHECK_THAT(one.text.str(), ContainsSubstring(status));
}

TEST_CASE("a command must be JSON and come by POST, with the header of requests that change something") {
  commanded_server one;
  CHECK(one.post("pause", "{}", {"content-type", "text/plain"}).status == 415);
  CHECK(one.post("pause", "{}", {"accept", "application/json"}).status == 415);
  CHECK(one.post("pause", "{}", {"content-type", "application/json; charset=utf-8"}).status == 202);
  CHECK(one.post("pause?now=1", "{}").status == 400);
  std::vector<header> own = {{"host", "localhost"}, {"authorization", "Bearer " + token}};
  CHECK(one.routes.answer({"POST", "/api/v1/control/pause", own, "{}"}).status == 403);
  auto got = one.routes.answer({"GET", "/api/v1/control/pause", own});
  CHECK(got.status == 405);
  CHECK(got.headers == std::vector<header>{{"Allow", "POST"}});
}

TEST_CASE("a job without --inspect-control refuses every command and names the option") {
  commanded_server one;
  one.routes = {{token, "session", "troupe_1", {"/"}, {}}, {one.job, nullptr, nullptr, nullptr}};
  for (const char* action : {"pause", "kill", "unknown"}) {
    auto answer = one.post(action, "{}");
    CHECK(answer.status == 403);
    CHECK_THAT(one.error(answer), ContainsSubstring("--inspect-control"));
  }
  CHECK(one.num_posted == 0);
}

TEST_CASE("the API tells whether the job takes commands") {
  commanded_server one;
  auto read = [&](const char* name) {
    std::vector<header> own = {{"host", "localhost"}, {"authorization", "Bearer " + token}};
    return json::parse(one.routes.answer({"GET", std::string("/api/v1/") + name, own}).body);
  };
  CHECK(read("job")["control"] == true);
  CHECK(read("job")["log_level"].is_null());
  CHECK(schema_problem(read("schema"), "job", read("job")) == "");
  one.routes = {{token, "session", "troupe_1", {"/"}, {}}, {one.job, nullptr, nullptr, nullptr}};
  CHECK(read("job")["control"] == false);
}

TEST_CASE("the API tells which commands are open, and what came of the newest others") {
  commanded_server one;
  auto read = [&](const char* name) {
    std::vector<header> own = {{"host", "localhost"}, {"authorization", "Bearer " + token}};
    return json::parse(one.routes.answer({"GET", std::string("/api/v1/") + name, own}).body);
  };
  CHECK(read("commands")["commands"].empty());
  one.post("snapshot", "{}");
  one.post("kill", R"({"rank":1})");
  auto open = read("commands")["commands"];
  REQUIRE(open.size() == 2);
  CHECK(open[0]["target"] == "the job");
  CHECK(open[1]["target"] == "the process of rank 1");
  CHECK(open[1]["rank"] == 1);
  CHECK(open[1]["outcome"].is_null());
  CHECK(schema_problem(read("schema"), "commands", read("commands")) == "");

  end_command(*one.job, "2-1", {command_result::done, "it is on disk", 7});
  auto told = read("commands")["commands"];
  REQUIRE(told.size() == 2);
  CHECK(told[0]["id"] == "2-1");
  CHECK(told[0]["outcome"] == "done");
  CHECK(told[0]["text"] == "it is on disk");
  CHECK(told[0]["step"] == 7);
  CHECK(told[0]["at_ms"] > 0);
  CHECK(told[1]["id"] == "2-2");
  CHECK(schema_problem(read("schema"), "commands", read("commands")) == "");
  // The event is the same row, and a command ends once.
  end_command(*one.job, "2-1", {command_result::lost, "again", {}});
  auto events = one.job->events()->after(0, 1 << 20).text;
  CHECK_THAT(events, ContainsSubstring("event: control\ndata: " + command_text(told[0])));
  CHECK_THAT(events, !ContainsSubstring("again"));
}

TEST_CASE("the API keeps the newest outcomes, and those of the process that this one has replaced") {
  commanded_server one;
  one.commands->add_ended(
      {"1-1", "kill", {}, -1, command_outcome{command_result::done, "was replaced", {}}, 5});
  auto first = json::parse(one.commands->rows().dump())[0];
  CHECK(first["target"].is_null());
  CHECK(first["rank"].is_null());
  CHECK(first["at_ms"] == 5);
  for (std::size_t i = 0; i < open_commands::max_ended; ++i) {
    auto id = json::parse(one.post("pause", "{}").body)["id"].get<std::string>();
    end_command(*one.job, id, {command_result::done, "", {}});
  }
  auto rows = one.commands->rows();
  CHECK(rows.size() == open_commands::max_ended);
  CHECK(rows[0]["id"] == "2-1");
}

TEST_CASE("no command is taken that cannot be written into the audit log") {
  commanded_server one;
  one.log->set_level(spdlog::level::off);
  auto refused = one.post("pause", "{}");
  CHECK(refused.status == 503);
  CHECK_THAT(one.error(refused), ContainsSubstring("--inspect-audit-log FILE"));
  CHECK(one.num_posted == 0);
}

TEST_CASE("commands are bounded, and are refused while no inspector runs") {
  commanded_server one;
  for (std::size_t i = 0; i < open_commands::max_open; ++i) REQUIRE(one.post("pause", "{}").status == 202);
  auto full = one.post("pause", "{}");
  CHECK(full.status == 503);
  CHECK_THAT(one.error(full), ContainsSubstring("not carried out yet"));
  CHECK_THAT(one.text.str(), ContainsSubstring(R"("outcome":"refused")"));
  commanded_server nobody;
  nobody.commands->on_post({});
  CHECK(nobody.post("pause", "{}").status == 503);
}
