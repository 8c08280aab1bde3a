// A job is watched over HTTP while it trains: every endpoint, its safety, and that nothing of this changes
// the job.
#include <sys/resource.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "jobs/job.hpp"
#include "support/http_client.hpp"
#include "support/schema.hpp"
#include "support/temp_folder.hpp"

using namespace troupe::testing;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using json = nlohmann::json;

namespace {

std::vector<std::string> program(std::vector<std::string> options,
                                 const std::vector<std::string>& launch_options = {}) {
  std::vector<std::string> command = {TROUPE_PROGRAM, "launch", "--nproc-per-node", "2"};
  command.insert(command.end(), launch_options.begin(), launch_options.end());
  command.insert(command.end(), {"--", FASHION_MNIST_PROGRAM});
  auto small = small_job();  // it begins with --steps
  bool has_steps = std::ranges::find(options, "--steps") != options.end();
  command.insert(command.end(), small.begin() + (has_steps ? 2 : 0), small.end());
  command.insert(command.end(), options.begin(), options.end());
  return command;
}

/// A job that trains until it is told to stop.
class watched_job {
 public:
  explicit watched_job(std::vector<std::string> options, const std::vector<std::string>& launch_options = {})
      : process_({.command = program(std::move(options), launch_options), .environment = {}, .without = {}}) {
    read_address();
  }
  /// Reads where the job is shown from now on: at its start, and when rank 0 was replaced.
  void read_address() {
    auto line = process_.wait_for_line("http://");
    auto port = line.find("127.0.0.1:") + 10, mark = line.find("/#token=");
    port_ = static_cast<std::uint16_t>(std::stoi(line.substr(port, mark - port)));
    token_ = line.substr(mark + 8, line.find('"', mark) - mark - 8);
  }
  std::uint16_t port() const { return port_; }
  std::string bearer() const { return "Authorization: Bearer " + token_; }
  http_answer get(const std::string& target) const { return ask_http(port_, "GET", target, {bearer()}); }
  /// Asks until the answer is as wanted.
  template <class Wanted>
  json read_until(const std::string& name, const Wanted& is_wanted) const {
    for (auto end = std::chrono::steady_clock::now() + 120s;; std::this_thread::sleep_for(50ms)) {
      auto told = read(name);
      if (is_wanted(told)) return told;
      INFO(told.dump(2));
      REQUIRE(std::chrono::steady_clock::now() < end);
    }
  }
  pid_t pid_of(int rank) const {
    return read("processes")["processes"][static_cast<std::size_t>(rank)]["pid"].get<pid_t>();
  }
  json read(const std::string& name) const { return json::parse(get("/api/v1/" + name).body); }
  client_socket stream(const std::string& target = "/api/v1/events") const {
    client_socket events(port_);
    events.send("GET " + target + " HTTP/1.1\r\nHost: localhost\r\n" + bearer() + "\r\n\r\n");
    return events;
  }
  process_result stop() {
    process_.signal(SIGTERM);
    return process_.wait();
  }

 private:
  background_process process_;
  std::uint16_t port_ = 0;
  std::string token_;
};

void check_every_endpoint(const watched_job& job) {
  auto schema = json::parse(job.get("/api/v1/schema").body);
  for (const char* name : {"job", "processes", "devices", "actors", "links", "plan", "timeline", "metrics",
                           "findings", "snapshots", "commands", "log"}) {
    INFO(name);
    CHECK(schema_problem(schema, name, job.read(name)) == "");
  }
  CHECK(job.read("job")["world_size"] == 2);
  CHECK(job.read("metrics")["steps"][0]["loss"] > 0);
  auto processes = job.read("processes")["processes"];
  CHECK(processes.size() == 2);
  CHECK(job.read("devices")["devices"].size() == 2);
  CHECK(job.read("links")["totals"][0]["tensor_bytes_sent"] > 0);
  CHECK(job.read("plan")["plan"]["devices"][1]["rank"] == 1);
  auto has_stage_of_rank_1 = job.get("/api/v1/actors").body.find("\"1#0/stage/1\"") != std::string::npos;
  CHECK(has_stage_of_rank_1);
  CHECK_THAT(job.get("/metrics").body, ContainsSubstring("troupe_tensor_sent_bytes_total{rank=\"1\"}"));
  CHECK(json::parse(job.get("/trace").body)["traceEvents"].size() > 10);
  CHECK(json::parse(job.get("/healthz").body)["status"] == "ok");
}

void check_unauthenticated(const watched_job& job) {
  auto port = job.port();
  CHECK(ask_http(port, "GET", "/api/v1/job").status == 401);
  CHECK(ask_http(port, "GET", "/api/v1/job", {"Authorization: Bearer wrong"}).status == 401);
  auto with_host =
      "GET /api/v1/job HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n" + job.bearer() + "\r\n\r\n";
  CHECK(send_http(port, with_host).status == 403);
  CHECK(ask_http(port, "GET", "/api/v1/job", {job.bearer(), "Origin: http://evil.example"}).status == 403);
  for (const char* method : {"POST", "PUT", "PATCH", "DELETE"})
    CHECK(ask_http(port, method, "/api/v1/job", {job.bearer()}).status == 403);
  CHECK(send_http(port, "nonsense\r\n\r\n").status == 400);
  CHECK(send_http(port, "GET /" + std::string(9000, 'a') + " HTTP/1.1\r\n\r\n").status == 431);
}

/// Kills the process of a rank: the job shows that it is replaced, and what it was.
void kill_and_watch(const watched_job& job, int rank, const client_socket& events) {
  auto before = job.read("processes")["processes"][static_cast<std::size_t>(rank)];
  REQUIRE(::kill(before["pid"].get<pid_t>(), SIGKILL) == 0);
  auto id = "\"" + std::to_string(rank) + "#1/device/1\"";
  auto shows_all = [&] {
    return !job.read("processes")["replaced"].empty() && job.read("job")["num_recoveries"] == 1 &&
           job.get("/api/v1/actors").body.find(id) != std::string::npos;
  };
  while (!shows_all()) REQUIRE(!events.read_until("event: step").empty());
  auto lost = job.read("processes")["replaced"][0];
  CHECK(lost["pid"] == before["pid"]);
  CHECK(lost["state"] == "lost");
  CHECK(job.read("job")["recoveries"][0]["rank"] == rank);
  CHECK_THAT(job.stream().read_until("event: recovery"), ContainsSubstring("event: recovery"));
}

/// Opens 1,000 connections that say nothing.
std::vector<client_socket> idle_connections(std::uint16_t port) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  std::vector<client_socket> idle;
  for (int i = 0; i < 1000; ++i) idle.emplace_back(port);
  return idle;
}

}  // namespace

TEST_CASE("a job of two processes shows all that the schema says, to those with the token", "[inspect]") {
  watched_job job({"--json", "--inspect", "--steps", "100000", "--epochs", "10000"});
  auto events = job.stream();
  auto begun = events.read_until("event: step");
  CHECK_THAT(begun, ContainsSubstring("event: generation"));
  // Reports of one poll come one by one.
  auto have_all_told = [&] {
    auto links = job.read("links")["totals"];
    auto devices = job.read("devices")["devices"];
    return links.size() == 2 && devices.size() == 2 && links[0]["tensor_bytes_sent"] > 0 &&
           links[1]["tensor_bytes_sent"] > 0;
  };
  while (!have_all_told()) REQUIRE(!events.read_until("event: step").empty());
  check_every_endpoint(job);
  check_unauthenticated(job);
  auto idle = idle_connections(job.port());
  CHECK_THAT(events.read_until("event: step"), ContainsSubstring("event: step"));
  CHECK(job.get("/api/v1/job").status == 200);
  kill_and_watch(job, 1, events);
  CHECK(job.stop().exit_code == 128 + SIGTERM);
}

TEST_CASE("a job that stands is not shown as one that runs", "[inspect][timed]") {
  watched_job job({"--json", "--inspect", "--steps", "100000", "--epochs", "10000"},
                  {"--suspect-after", "100s"});
  auto well = job.read_until(
      "job", [](const json& told) { return told["steps_per_s"].is_number() && told["steps_per_s"] > 0; });
  CHECK(well["seconds_left"] > 0);
  CHECK(well["learning_rate"] > 0);
  auto stopped = job.pid_of(1);
  REQUIRE(::kill(stopped, SIGSTOP) == 0);
  auto stands = job.read_until("job", [](const json& told) { return told["steps_per_s"] == 0; });
  CHECK(stands["samples_per_s"] == 0);
  CHECK(stands["seconds_left"].is_null());
  CHECK(stands["newest_step_ms"] < stands["updated_ms"]);
  auto wrong = job.read_until("findings", [](const json& told) { return !told["findings"].empty(); });
  CHECK(wrong["findings"][0]["rank"] == 1);
  REQUIRE(::kill(stopped, SIGCONT) == 0);
  job.read_until("job", [](const json& told) { return told["steps_per_s"] > 0; });
  job.read_until("findings", [](const json& told) { return told["findings"].empty(); });
}

TEST_CASE("the history of a job survives the loss of each of its processes, rank 0 included", "[inspect]") {
  watched_job job({"--json", "--inspect", "--steps", "100000", "--epochs", "10000"});
  auto has = [](std::size_t recoveries) {
    return [recoveries](const json& told) { return told["num_recoveries"] == recoveries; };
  };
  auto have_both_told = [&] {
    job.read_until("processes", [](const json& told) { return told["processes"].size() == 2; });
  };
  have_both_told();
  auto begun = job.read("job")["started_ms"].get<std::int64_t>();
  REQUIRE(::kill(job.pid_of(1), SIGKILL) == 0);
  auto first = job.read_until("job", has(1))["recoveries"][0];
  // The next process of rank 1 is too young for the first recovery: rank 0 tells it, and is lost.
  have_both_told();
  job.read_until("processes", [](const json& told) { return told["processes"][1]["incarnation"] == 1; });
  for (int polls = 0; polls < 3; ++polls) {
    auto before = job.read("job")["updated_ms"];
    job.read_until("job", [&](const json& told) { return told["updated_ms"] != before; });
  }
  REQUIRE(::kill(job.pid_of(0), SIGKILL) == 0);
  job.read_address();
  auto told = job.read_until("job", has(2));
  CHECK(told["recoveries"].size() == 2);
  CHECK(told["recoveries"][0]["rank"] == 1);
  CHECK(told["recoveries"][0]["generation"] == first["generation"]);
  CHECK(told["recoveries"][1]["rank"] == 0);
  CHECK(told["started_ms"].get<std::int64_t>() <= begun);
}

TEST_CASE("snapshots that are shown to be on disk are on disk", "[inspect]") {
  temp_folder folder;
  watched_job job({"--json", "--inspect", "--steps", "100000", "--epochs", "10000", "--snapshot-dir",
                   folder.path().string(), "--disk-every", "20"});
  auto told = job.read_until("snapshots", [](const json& one) {
    return one["on_disk"].is_array() && !one["on_disk"].empty() && one["step_on_disk"] > 60;
  });
  CHECK(told["on_disk"].size() <= 3);  // two are kept, and the newest may have come between
}

TEST_CASE("a job that is watched has the same weights", "[inspect]") {
  auto watched = small_job();
  watched.insert(watched.end(), {"--inspect", "--devices", "2"});
  auto outcome = run_local(watched);
  CHECK(outcome.named("inspector").size() == 1);
  CHECK(outcome.weights_sha256() == run_local(small_job()).weights_sha256());
}

TEST_CASE("where a job cannot be watched it does not begin, and says why", "[inspect]") {
  temp_folder folder;
  auto refused = [&](const std::vector<std::string>& options) {
    auto command = small_job();
    command.insert(command.begin(), FASHION_MNIST_PROGRAM);
    command.insert(command.end(), options.begin(), options.end());
    auto result = run_process({.command = command, .environment = {}, .without = {}});
    CHECK(result.exit_code == 2);
    return result.errors;
  };
  CHECK_THAT(refused({"--inspect", "example.org:80"}),
             ContainsSubstring("--inspect") && ContainsSubstring("no IP address"));
  CHECK_THAT(refused({"--inspect", "0.0.0.0:0"}), ContainsSubstring("--inspect-token-file"));
  CHECK_THAT(refused({"--inspect-token-file", "x"}), ContainsSubstring("add --inspect"));
  auto file = (folder.path() / "token").string();
  std::ofstream(file) << "short\n";
  CHECK_THAT(refused({"--inspect", "0.0.0.0:0", "--inspect-token-file", file}),
             ContainsSubstring("16 to 256"));
}
