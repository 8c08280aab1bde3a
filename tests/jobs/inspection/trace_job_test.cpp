// The traces of whole jobs: a viewer of the Chrome JSON format can read them, and the idle time of a step
// computed from them is what the inspector shows.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <fstream>
#include <limits>
#include <set>

#include "jobs/inspection/paced_job.hpp"
#include "jobs/inspection/trace_export.hpp"

using namespace troupe::testing;
using Catch::Matchers::WithinAbs;
using json = nlohmann::json;

namespace {

constexpr double rounding_s = 1e-8;  // of times in microseconds with three places

json merged_trace(const std::filesystem::path& folder, int num_processes) {
  json merged = {{"traceEvents", json::array()}};
  for (int rank = 0; rank < num_processes; ++rank) {
    std::ifstream file(folder / ("trace-rank-" + std::to_string(rank) + ".json"));
    auto read = json::parse(file);
    for (const auto& event : read["traceEvents"]) merged["traceEvents"].push_back(event);
  }
  return merged;
}

void check_readable(const trace_export& trace) {
  CHECK(trace.problems == std::vector<std::string>{});
  CHECK(trace.overlaps() == std::vector<std::string>{});
  CHECK(trace.arrow_problems() == std::vector<std::string>{});
}

struct step_idle {
  double span_s = 0;
  std::map<std::string, double> idle_s;  ///< by the name of the device's thread
  double bubble = 0;                     ///< idle share of all devices' span
};

/// From the slices of the devices' threads: what forwards and backwards of the step leave of the time from
/// the first of them to the last. The optimizer's step is not part of it, as in what the inspector shows.
step_idle idle_of_step(const trace_export& trace, std::uint64_t step) {
  const std::set<std::string> computing = {"F", "B", "I", "W", "R", "all_reduce"};
  auto first = std::numeric_limits<std::int64_t>::max(), last = std::int64_t{0};
  std::map<std::string, std::int64_t> busy;
  for (const auto& [at, thread] : trace.threads)
    for (const auto& slice : thread.slices) {
      if (!thread.name.starts_with("device ") || !computing.contains(slice.name)) continue;
      if (slice.arguments["step"] != step) continue;
      first = std::min(first, slice.begin_ns);
      last = std::max(last, slice.end_ns);
      busy[thread.name] += slice.end_ns - slice.begin_ns;
    }
  step_idle found;
  if (busy.empty()) return found;
  found.span_s = static_cast<double>(last - first) * 1e-9;
  for (const auto& [device, busy_ns] : busy) {
    found.idle_s[device] = static_cast<double>(last - first - busy_ns) * 1e-9;
    found.bubble += found.idle_s[device] / found.span_s / static_cast<double>(busy.size());
  }
  return found;
}

void check_step(const trace_export& trace, const json& shown, const json& metrics) {
  std::uint64_t step = shown["step"];
  INFO("step " << step);
  auto computed = idle_of_step(trace, step - 1);  // a trace numbers steps from 0
  const auto& measured = shown["measured"];
  REQUIRE(computed.idle_s.size() == measured["idle"].size());
  CHECK(computed.bubble > 0);
  CHECK_THAT(computed.span_s, WithinAbs(measured["makespan"], rounding_s));
  double bubble = 0;
  for (std::size_t device = 0; device < measured["idle"].size(); ++device) {
    double idle = measured["idle"][device];
    CHECK_THAT(computed.idle_s.at("device " + std::to_string(device)), WithinAbs(idle, rounding_s));
    bubble += idle / measured["makespan"].get<double>() / static_cast<double>(measured["idle"].size());
  }
  CHECK_THAT(computed.bubble, WithinAbs(bubble, 1e-5));
  for (const auto& one : metrics["steps"])  // what the overview draws
    if (one["step"] == step)
      CHECK_THAT(computed.bubble,
                 WithinAbs(1 - one["busy_s"].get<double>() / one["span_s"].get<double>(), 1e-5));
}

/// The timelines of `count` steps, as the inspector shows them while the job trains.
std::vector<json> shown_timelines(const paced_job& job, std::size_t count) {
  auto events = job.events();
  std::vector<json> shown;
  while (shown.size() < count) {
    REQUIRE(!events.read_until("event: step").empty());
    auto newest = job.read("timeline");
    if (newest["measured"].is_null() || (!shown.empty() && shown.back()["step"] == newest["step"])) continue;
    shown.push_back(newest);
  }
  return shown;
}

}  // namespace

TEST_CASE("the idle time of a step computed from the traces is what the inspector shows", "[trace]") {
  temp_folder traces;
  paced_job job(2, {"--epochs", "10", "--devices", "2", "--trace-dir", traces.path().string()});
  auto shown = shown_timelines(job, 3);
  auto metrics = job.read("metrics");
  job.finish();
  trace_export trace(merged_trace(traces.path(), 2));
  check_readable(trace);
  CHECK(trace.process_names == std::map<int, std::string>{{1, "rank 0"}, {2, "rank 1"}});
  CHECK(trace.num_arrows() > 100);
  for (const auto& one : shown) check_step(trace, one, metrics);
}

TEST_CASE("the trace of a job can be read while it trains, and has the step that the inspector shows",
          "[trace]") {
  paced_job job(1, {"--epochs", "10", "--devices", "4"});
  auto shown = shown_timelines(job, 1);
  trace_export trace(json::parse(job.get("/trace").body));
  check_readable(trace);
  check_step(trace, shown[0], job.read("metrics"));
  job.finish();
}
