// Jobs of four processes that take commands over HTTP while they train: they are paused, stepped, and lose
// actors and processes, and have the same weights as a job that nobody touched.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "jobs/inspection/paced_job.hpp"
#include "jobs/job.hpp"
#include "support/http_client.hpp"
#include "support/temp_folder.hpp"

using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;
using json = nlohmann::json;

namespace {

/// A paced job of four processes that is given commands.
class commanded_job : public paced_job {
 public:
  explicit commanded_job(const words& options) : paced_job(4, options) {
    while (read("job")["state"] != "running" || read("job")["step"] < 1 ||
           read("processes")["processes"].size() < 4)
      wait();
  }

  http_answer post(const std::string& action, const json& body, bool with_header = true) const {
    words headers = {bearer(), "Content-Type: application/json", "User-Agent: control_test"};
    if (with_header) headers.emplace_back("X-Troupe-Request: 1");
    return ask_http(port(), "POST", "/api/v1/control/" + action, headers, body.dump());
  }
  /// Gives a command that is taken, and returns its outcome.
  json carried_out(const std::string& action, const json& body = json::object()) const {
    auto taken = post(action, body);
    INFO(action << " " << body << ": " << taken.body);
    REQUIRE(taken.status == 202);
    return outcome_of(json::parse(taken.body)["id"]);
  }
  json outcome_of(const std::string& id) const {
    auto stream = events();
    auto begin = "data: {\"id\":\"" + id + "\"";
    auto text = stream.read_until(begin);
    REQUIRE_THAT(text, ContainsSubstring(begin));
    auto rest = text.substr(text.find(begin) + 6);
    while (rest.find('\n') == std::string::npos) rest += stream.read_until("\n");
    return json::parse(rest.substr(0, rest.find('\n')));
  }
  void check_done(const std::string& action, const json& body = json::object()) const {
    auto outcome = carried_out(action, body);
    INFO(outcome.dump());
    CHECK(outcome["outcome"] == "done");
  }
  /// The id of an actor of this role that runs.
  std::string actor(const std::string& role, int rank) const {
    for (;; wait()) {
      auto told = read("actors");
      for (const auto& one : told["actors"])
        if (one["role"] == role && one["rank"] == rank && one["state"] == "running") return one["id"];
    }
  }
  void wait() const { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }
  /// To its end: the weights are those of the same job in one process that nobody touched.
  void check_same_weights() { CHECK(finish() == untouched_weights(many_steps)); }
};

}  // namespace

TEST_CASE("a job is paused, stepped, saved and resumed, and trains the same bits", "[control]") {
  temp_folder folder;
  auto snapshots = folder.path() / "snapshots";
  commanded_job job(with_commands({"--snapshot-dir", snapshots.string(), "--snapshot-interval", "1h"}));
  CHECK(job.read("job")["control"] == true);
  auto running = job.carried_out("snapshot");
  CHECK(running["outcome"] == "done");
  CHECK(running["step"] > 0);
  job.check_done("pause");
  auto stands = [&] { return job.read("job")["stands"] == true; };
  while (!stands()) job.wait();
  auto before = job.read("job")["step"].get<int>();
  for (const char* unit : {"step", "microbatch", "action"})
    job.check_done("step", {{"unit", unit}, {"count", 1}});
  CHECK(job.read("job")["step"].get<int>() <= before + 3);
  auto saved = job.carried_out("snapshot");
  CHECK(saved["outcome"] == "done");
  CHECK(saved["step"].get<int>() >= running["step"].get<int>());
  CHECK(std::filesystem::exists(snapshots));
  job.check_done("log_level", {{"level", "debug"}});
  CHECK(job.read("job")["log_level"] == "debug");
  job.check_done("log_level", {{"level", "warn"}});
  job.check_done("resume");
  CHECK(job.post("stop", json::object()).status == 404);
  CHECK(job.post("kill", {{"rank", 4}}).status == 404);
  CHECK(job.post("pause", json::object(), false).status == 403);
  job.check_same_weights();
  std::ostringstream audit;
  audit << std::ifstream(snapshots / "inspector_audit.jsonl").rdbuf();
  CHECK_THAT(audit.str(), ContainsSubstring("\"user_agent\":\"control_test\"") &&
                              ContainsSubstring("\"outcome\":\"done\"") &&
                              ContainsSubstring("\"status\":404"));
}

TEST_CASE("a job whose actors are killed and restarted on command trains the same bits", "[control]") {
  temp_folder folder;
  commanded_job job(with_commands({"--snapshot-dir", folder.path().string()}));
  job.check_done("kill", {{"actor", job.actor("device", 1)}});
  job.check_done("restart", {{"actor", job.actor("device", 0)}});
  job.check_done("kill", {{"actor", job.actor("stage", 2)}});
  job.check_done("kill", {{"actor", job.actor("loader", 0)}});
  job.check_done("restart", {{"actor", job.actor("snapshot_writer", 3)}});
  job.check_done("kill", {{"actor", job.actor("disk", 1)}});
  job.check_done("kill", {{"actor", job.actor("peer_copy_store", 2)}});
  job.check_done("kill", {{"actor", job.actor("scheduler", 0)}});
  job.check_done("restart", {{"actor", job.actor("inspector", 0)}});
  job.check_same_weights();
}

TEST_CASE(
    "a job whose processes are killed and restarted on command, also while it is paused, trains the same "
    "bits",
    "[control]") {
  commanded_job job(with_commands());
  job.check_done("kill", {{"rank", 2}});
  job.check_done("restart", {{"rank", 1}});
  job.check_done("pause");
  job.check_done("kill", {{"rank", 3}});
  CHECK(job.read("job")["is_paused"] == true);
  job.check_done("resume");
  job.check_same_weights();
}

TEST_CASE("rank 0 is restarted: its successor serves again and tells what became of the command",
          "[control]") {
  temp_folder folder;
  auto is_kill = GENERATE(false, true);
  auto audit = (folder.path() / "audit.jsonl").string();
  commanded_job job(with_commands({"--inspect-audit-log", audit}));
  auto taken = job.post(is_kill ? "kill" : "restart", {{"rank", 0}});
  REQUIRE(taken.status == 202);
  job.follow_rank_0();
  auto outcome = job.outcome_of(json::parse(taken.body)["id"]);
  CHECK(outcome["outcome"] == "done");
  job.check_done("pause");
  job.check_done("resume");
  job.check_same_weights();
}

TEST_CASE("a job that takes no commands refuses all, and is not harmed", "[control]") {
  commanded_job job(many_steps);
  CHECK(job.read("job")["control"] == false);
  for (const char* action : {"pause", "resume", "snapshot", "kill", "nonsense"}) {
    auto refused = job.post(action, json::object());
    CHECK(refused.status == 403);
    CHECK_THAT(refused.body, ContainsSubstring("--inspect-control"));
  }
  job.check_same_weights();
}

TEST_CASE("a job without launcher refuses what would end it", "[control]") {
  auto command = small_job();
  command.insert(command.begin(), FASHION_MNIST_PROGRAM);
  command.insert(command.end(),
                 {"--inspect", "--inspect-control", "--inspect-audit-log", "/no/such/folder/f"});
  auto result = run_process({.command = command, .environment = {}, .without = {}});
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.errors, ContainsSubstring("--inspect-audit-log FILE"));
}
