#include "troupe/inspector/commands/audit_log.hpp"

#include <spdlog/sinks/ostream_sink.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/temp_folder.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/inspector/commands/audit_lines.hpp"

using namespace troupe;
using namespace troupe::actors::inspector;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using json = nlohmann::json;

namespace {

struct logged {
  std::ostringstream text;
  std::shared_ptr<spdlog::logger> log =
      std::make_shared<spdlog::logger>("log", std::make_shared<spdlog::sinks::ostream_sink_st>(text));
};

std::string contents(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

const audited_command command{"0-1", "127.0.0.1:4", "bearer", "curl", "kill", R"({"rank":1})", 202, ""};

}  // namespace

TEST_CASE("a command and its outcome are lines with time, caller and what was commanded") {
  auto line = json::parse(audit_line(1'764'080'418'007, "job", command));
  CHECK(line["version"] == 1);
  CHECK(line["time"] == "2025-11-25T14:20:18.007Z");
  CHECK(line["at_ms"] == 1'764'080'418'007);
  CHECK(line["id"] == "0-1");
  CHECK(line["caller"] == "127.0.0.1:4");
  CHECK(line["by"] == "bearer");
  CHECK(line["body"] == R"({"rank":1})");
  CHECK(line["status"] == 202);
  CHECK(line["error"].is_null());
  auto outcome = json::parse(audit_line(1, "job", "0-1", "snapshot", {command_result::done, "on disk", 7}));
  CHECK(outcome["outcome"] == "done");
  CHECK(outcome["step"] == 7);
}

TEST_CASE("what callers send is cut, and has no line end or other bytes that break a line") {
  auto strange = command;
  strange.user_agent = std::string(3000, 'a');
  strange.body = "\n\xff" + std::string(4000, 'b');
  auto text = audit_line(1, "job", strange);
  CHECK(text.size() < 1200);
  CHECK(text.find('\n') == std::string::npos);
  CHECK(json::parse(text)["user_agent"].get<std::string>().size() == 200);
}

TEST_CASE("lines are appended to a file that only its owner reads") {
  temp_folder folder;
  auto file = folder.path() / "new" / "audit.jsonl";
  logged said;
  {
    audit_log audit({file, 0700}, said.log);
    CHECK(audit.append("one"));
    audit.append_later("two");
  }
  {
    audit_log audit({file, 0}, said.log);
    CHECK(audit.append("three"));
    CHECK(audit.newest() == "one\ntwo\nthree\n");
  }
  struct stat found {};
  REQUIRE(::stat(file.c_str(), &found) == 0);
  CHECK((found.st_mode & 0777) == 0600);
}

TEST_CASE("a line that a crash has cut stays a line of its own") {
  temp_folder folder;
  auto file = folder.path() / "audit.jsonl";
  std::ofstream(file) << "{\"cut";
  logged said;
  audit_log(audit_options{file, 0}, said.log).append("next");
  CHECK(contents(file) == "{\"cut\nnext\n");
}

TEST_CASE("a file that cannot be written is refused at once, with another option to take") {
  temp_folder folder;
  logged said;
  auto open = [&](const std::filesystem::path& file) { audit_log(audit_options{file, 0}, said.log); };
  auto names_option = MessageMatches(ContainsSubstring("--inspect-audit-log FILE"));
  CHECK_THROWS_MATCHES(open(folder.path()), bad_input, names_option);
  CHECK_THROWS_MATCHES(open(folder.path() / "no" / "file"), bad_input, names_option);
  CHECK_THROWS_MATCHES(open("/dev/null"), bad_input, MessageMatches(ContainsSubstring("no regular file")));
}

TEST_CASE("a write that fails later is said in the log, and the line counts as not written") {
  temp_folder folder;
  logged said;
  audit_log audit({folder.path() / "audit.jsonl", 0}, said.log);
  CHECK(audit.append("fits"));
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  rlimit small{4, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  bool written = audit.append("does not fit");
  ::setrlimit(RLIMIT_FSIZE, &before);
  CHECK_FALSE(written);
  CHECK_THAT(said.text.str(), ContainsSubstring("cannot be written") && ContainsSubstring("refused"));
  CHECK(audit.append("fits again"));
}

TEST_CASE("without a file the log has the lines, whatever its level, unless it is off") {
  logged said;
  said.log->set_level(spdlog::level::err);
  audit_log audit({}, said.log);
  CHECK(audit.append("a line"));
  CHECK_THAT(said.text.str(), ContainsSubstring("audit a line"));
  said.log->set_level(spdlog::level::off);
  CHECK_FALSE(audit.append("another"));
}

TEST_CASE("commands that no outcome follows are found, of one job and of this version") {
  auto with_id = [](const std::string& id, const std::string& action, const std::string& body) {
    auto one = command;
    one.id = id;
    one.action = action;
    one.body = body;
    return audit_line(1, "job", one) + "\n";
  };
  auto refused = command;
  refused.id.clear();
  refused.status = 409;
  auto lines = with_id("0-1", "pause", "{}") + with_id("0-2", "kill", R"({"rank":0})") + "no JSON\n{}\n" +
               audit_line(1, "other job", command) + "\n" + audit_line(1, "job", refused) + "\n" +
               audit_line(2, "job", "0-1", "pause", {command_result::done, "stands", {}}) +
               "\n{\"version\":2,\"id\":\"0-3\",\"job_id\":\"job\",\"status\":202}\n" +
               with_id("0-4", "step", R"({"unit":"step","count":1})");
  auto open = unfinished_commands(lines, "job");
  REQUIRE(open.size() == 2);
  CHECK(open[0].id == "0-2");
  CHECK(outcome_after_replacement(open[0]).result == command_result::done);
  CHECK(open[1].id == "0-4");
  CHECK(outcome_after_replacement(open[1]).result == command_result::lost);
}

TEST_CASE("a name that leads to another file is refused, and that file keeps its content and mode") {
  temp_folder folder;
  auto precious = folder.path() / "precious", file = folder.path() / "audit.jsonl";
  std::ofstream(precious) << "text";
  ::chmod(precious.c_str(), 0644);
  SECTION("a symbolic link") { std::filesystem::create_symlink(precious, file); }
  SECTION("a hard link") { std::filesystem::create_hard_link(precious, file); }
  logged to;
  CHECK_THROWS_MATCHES(audit_log({file}, to.log), bad_input,
                       MessageMatches(ContainsSubstring("link") && ContainsSubstring("--inspect-audit-log")));
  struct stat found {};
  REQUIRE(::stat(precious.c_str(), &found) == 0);
  CHECK((found.st_mode & 0777) == 0644);
  CHECK(contents(precious) == "text");
}
