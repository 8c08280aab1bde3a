#include "troupe/inspector/inspector_routes.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "actors/inspector/shown_job.hpp"
#include "support/schema.hpp"
#include "support/temp_folder.hpp"
#include "troupe/inspector/views/views.hpp"
#include "troupe/posix/unix_time.hpp"
#include "troupe/snapshot/folder_layout.hpp"

using namespace troupe;
using namespace troupe::actors::inspector;
using namespace troupe::testing;
using json = nlohmann::json;

namespace {

const std::string token = "the-token-of-the-job";

struct shown {
  explicit shown(bool has_begun = true) {
    if (!has_begun) return;
    auto view = shown_job();
    view.at_ms = posix::unix_now_ms();
    job->publish(view);
    for (auto one : running_job().steps.steps) {
      one.at_ms += view.at_ms - 1500;
      job->metrics().add(one);
    }
    log->log({"troupe", spdlog::level::warn, "<script>alert(1)</script>"});
  }
  http::http_response get(const std::string& target, const std::string& method = "GET",
                          std::vector<std::pair<std::string, std::string>> more = {}) {
    more.emplace_back("host", "localhost");
    more.emplace_back("authorization", "Bearer " + token);
    return routes.answer({method, target, more});
  }
  std::shared_ptr<inspected_job> job = std::make_shared<inspected_job>("job-7");
  std::shared_ptr<log_tail> log = std::make_shared<log_tail>();
  trace::trace_recorder trace{0};
  inspector_routes routes{{token, "session", "troupe_1", {"/", "/healthz"}, {}}, {job, log, &trace}};
};

}  // namespace

TEST_CASE("every answer is as the served schema says, before a job begins and in it") {
  bool has_begun = GENERATE(false, true);
  shown one(has_begun);
  auto schema = json::parse(one.get("/api/v1/schema").body);
  for (const char* name : {"job", "processes", "devices", "actors", "links", "plan", "timeline", "metrics",
                           "findings", "snapshots", "commands", "log"}) {
    INFO(name);
    auto answer = one.get(std::string("/api/v1/") + name);
    CHECK(answer.status == 200);
    CHECK(answer.content_type == "application/json");
    CHECK(schema_problem(schema, name, json::parse(answer.body)) == "");
  }
}

TEST_CASE("the API shows the job") {
  shown one;
  auto get = [&](const char* name) { return json::parse(one.get(std::string("/api/v1/") + name).body); };
  auto job = get("job");
  CHECK(job["job_id"] == "job-7");
  CHECK(job["step"] == 7);
  CHECK(job["end_step"] == 20);
  CHECK(job["loss"] == 0.25);
  CHECK(job["samples_per_s"] == 4 * 32.0);
  CHECK(job["steps_per_s"] == 4);
  CHECK(job["seconds_left"] == 13 / 4.0);
  CHECK(job["learning_rate"] == 0.5);
  CHECK(job["recoveries"][0]["cause"] == "killed by SIGKILL");
  CHECK(get("processes")["replaced"][0]["state"] == "lost");
  CHECK(get("devices")["devices"][1]["action"] == "1F1");
  CHECK(get("devices")["devices"][0]["place"] == "cpu");
  CHECK(get("devices")["devices"][0]["memory_limit_bytes"].is_null());
  auto on_gpu = get("devices")["devices"][1];
  CHECK(on_gpu["place"] == "cuda:0");
  CHECK(on_gpu["memory_bytes"] == 4000);
  CHECK(on_gpu["peak_memory_bytes"] == 5000);
  CHECK(on_gpu["memory_limit_bytes"] == 8000);
  CHECK(on_gpu["host_memory_bytes"] == 700);
  CHECK(get("plan")["plan"]["devices"][0]["actions"][0] == "0F0");
  CHECK(get("plan")["simulated"]["devices"].size() == 2);
  CHECK(get("timeline")["measured"]["makespan"] == 0.003);
  CHECK(get("findings")["findings"][0]["kind"] == "stuck_rank");
  CHECK(get("findings")["findings"][0]["actor"].is_null());
  CHECK(get("findings")["findings"][0]["rank"] == 1);
  CHECK(get("snapshots")["committed_step"] == 6);
  CHECK(get("log")["lines"][0]["text"] == "<script>alert(1)</script>");
}

TEST_CASE("a job that does nothing any more has the rate 0, and nobody knows when it ends") {
  shown one;
  auto view = shown_job();
  view.at_ms = posix::unix_now_ms() + 20'000;
  one.job->publish(view);
  auto job = json::parse(one.get("/api/v1/job").body);
  CHECK(job["steps_per_s"] == 0);
  CHECK(job["samples_per_s"] == 0);
  CHECK(job["seconds_left"].is_null());
  CHECK(job["newest_step_ms"].get<std::int64_t>() < view.at_ms - 19'000);
}

TEST_CASE("the snapshots on disk are those that are there now and complete") {
  shown one;
  auto on_disk = [&] { return json::parse(one.get("/api/v1/snapshots").body)["on_disk"]; };
  CHECK(on_disk() == json::array());  // the folder is not there yet
  temp_folder folder;
  auto view = shown_job();
  auto job = std::make_shared<actors::job::job_definition>(*view.scheduler->job);
  job->snapshots.folder = folder.path();
  view.scheduler->job = job;
  one.job->publish(view);
  auto write = [&](std::uint64_t step, const char* file) {
    std::filesystem::create_directories(folder.path() / snapshot::step_folder_name(step));
    std::ofstream(folder.path() / snapshot::step_folder_name(step) / file) << "{}";
  };
  write(5, "manifest.json");
  write(9, "manifest.json");
  write(11, "stage-0000.part");  // is being written
  CHECK(on_disk() == json::array({9, 5}));
  std::filesystem::remove_all(folder.path() / snapshot::step_folder_name(5));
  CHECK(on_disk() == json::array({9}));
  job->snapshots.folder.clear();
  CHECK(on_disk().is_null());
}

TEST_CASE("the tree of actors has unique names, keeps the dead, and says why actors failed") {
  shown one;
  auto actors = json::parse(one.get("/api/v1/actors").body)["actors"];
  std::map<std::string, json> by_id;
  for (const auto& actor : actors) CHECK(by_id.emplace(actor["id"], actor).second);
  for (const auto& [id, actor] : by_id)
    CHECK((actor["role"] == "supervisor" ? actor["parent"].is_null() : by_id.contains(actor["parent"])));
  CHECK(by_id["1#0/supervisor"]["state"] == "lost");
  CHECK(by_id["1#1/device/1"]["state"] == "running");
  CHECK(by_id["1#1/device/1"]["restarts"] == 2);
  CHECK(by_id["1#1/device/1"]["reason"] == "out of memory");
  CHECK(by_id["0#0/loader/0"]["state"] == "ended");
}

TEST_CASE("actors show what they have counted, and what waits for those that are not lost") {
  shown one;
  auto actors = json::parse(one.get("/api/v1/actors").body)["actors"];
  for (const auto& actor : actors) {
    bool is_lost = actor["state"] == "lost";
    CHECK(actor["mailbox_depth"].is_null() == is_lost);
    CHECK(actor["oldest_message_s"].is_null() == is_lost);
    if (actor["role"] == "supervisor") {
      CHECK(actor["messages_in"] == 50);
      CHECK(actor["messages_out"] == 60);
      CHECK(actor["bytes_in"] == 700);
      CHECK(actor["bytes_out"] == 800);
    }
    if (actor["role"] == "stage") CHECK(actor["handler_p50_s"].is_null());
    if (actor["role"] != "device") continue;
    CHECK(actor["handler_s"] == 2.0);
    CHECK(actor["handler_p50_s"] == 4.096e-6);
    CHECK(actor["handler_p99_s"] > 8.192e-6);
    if (is_lost) continue;
    CHECK(actor["mailbox_depth"] == 3);
    CHECK(actor["oldest_message_s"] == 0.25);
    CHECK(actor["handler_running_s"] == 0.5);
  }
}

TEST_CASE("a link shows what both its ends count, and rates once there are two reports") {
  shown one;
  auto answer = json::parse(one.get("/api/v1/links").body);
  CHECK(answer["totals"][0]["tensor_bytes_sent"] == 1000);
  CHECK(answer["totals"][0]["tensor_bytes_shared"] == 600);
  REQUIRE(answer["links"].size() == 2);
  auto link = answer["links"][0];
  CHECK(link["from"] == 0);
  CHECK(link["to"] == 1);
  CHECK(link["tensors_sent"] == 10);
  CHECK(link["tensors_received"] == 8);
  CHECK(link["tensor_bytes_in_flight"] == 200);
  CHECK(link["frame_bytes_queued"] == 30);
  CHECK(link["bytes_per_s"] == 0.0);

  auto view = shown_job();
  auto before = view.processes[0].report;
  auto& counted = view.processes[0].report.peers[0].counted;
  counted.tensor_bytes_sent += 3000;
  counted.frames_sent += 1;
  set_rates(view.processes[0], before, 0.5);
  view.processes.erase(1);
  one.job->publish(view);
  answer = json::parse(one.get("/api/v1/links").body);
  CHECK(answer["links"][0]["bytes_per_s"] == 6000.0);
  CHECK(answer["links"][0]["frames_per_s"] == 2.0);
  CHECK(answer["links"][0]["tensors_received"].is_null());
  CHECK(answer["links"][1]["from"] == 1);
  CHECK(answer["links"][1]["tensors_sent"].is_null());
  CHECK(answer["links"][1]["bytes_per_s"].is_null());
}

TEST_CASE("the metrics' history is read in parts") {
  shown one;
  auto steps = [&](const std::string& query) {
    return json::parse(one.get("/api/v1/metrics?" + query).body)["steps"];
  };
  CHECK(steps("").size() == 2);
  CHECK(steps("limit=1")[0]["step"] == 6);
  CHECK(steps("after=6")[0]["step"] == 7);
  CHECK(steps("after=7").empty());
  for (const char* bad : {"after=x", "limit=0", "limit=10001", "after=-1"})
    CHECK(one.get(std::string("/api/v1/metrics?") + bad).status == 400);
}

TEST_CASE("what is shown cannot be changed: other methods and paths are refused") {
  shown one;
  for (const char* method : {"POST", "PUT", "PATCH", "DELETE"}) {
    CHECK(one.get("/api/v1/job", method).status == 403);
    auto answer = one.get("/api/v1/job", method, {{"x-troupe-request", "1"}});
    CHECK(answer.status == 405);
    CHECK(answer.headers == std::vector<std::pair<std::string, std::string>>{{"Allow", "GET, HEAD"}});
  }
  CHECK(one.get("/api/v1/nothing").status == 404);
  CHECK(one.get("/api/v1/../../etc/passwd").status == 404);
}

TEST_CASE("a token is exchanged for a cookie, with which browsers read") {
  shown one;
  CHECK(one.get("/api/v1/session").status == 405);
  CHECK(one.get("/api/v1/session", "POST").status == 403);
  auto made = one.get("/api/v1/session", "POST", {{"x-troupe-request", "1"}});
  CHECK(made.status == 204);
  REQUIRE(made.headers.size() == 1);
  CHECK(made.headers[0].second == "troupe_1=session; Path=/; HttpOnly; SameSite=Strict");
  auto asked = [&](const std::string& cookie) {
    return one.routes.answer({"GET", "/api/v1/job", {{"host", "localhost"}, {"cookie", cookie}}}).status;
  };
  CHECK(asked("troupe_1=session") == 200);
  CHECK(asked("troupe_1=other") == 401);
}

TEST_CASE("health is known without a token, and is bad when nobody gathers any more") {
  shown one;
  auto health = [&] { return one.routes.answer({"GET", "/healthz", {{"host", "localhost"}}}); };
  CHECK(health().status == 200);
  auto old = shown_job();
  old.at_ms = posix::unix_now_ms() - inspector_routes::stale_after_ms - 1000;
  one.job->publish(old);
  CHECK(health().status == 503);
  CHECK(json::parse(health().body)["status"] == "stale");
  CHECK(shown(false).get("/healthz").status == 200);
}

TEST_CASE("events go on where a client was") {
  shown one;
  CHECK(one.get("/api/v1/events").events_after == 0);
  CHECK(one.get("/api/v1/events?after=5").events_after == 5);
  CHECK(one.get("/api/v1/events?after=5", "GET", {{"last-event-id", "9"}}).events_after == 9);
  CHECK(one.get("/api/v1/events", "GET", {{"last-event-id", "x"}}).status == 400);
}

TEST_CASE("the trace is one of Perfetto's") {
  shown one;
  one.trace.ring("device 0").record({1000, 2000, 1, 3, 0, 0, trace::trace_kind::forward});
  auto trace = json::parse(one.get("/trace").body);
  CHECK(trace["traceEvents"].back()["name"] == "F");
}
