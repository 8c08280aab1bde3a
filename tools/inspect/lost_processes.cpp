#include "inspect/lost_processes.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "troupe/error/errors.hpp"
#include "troupe/trace/process_events.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

constexpr std::size_t most_events = 500, events_of_thread = 50;
constexpr std::int64_t ns_per_ms = 1'000'000;

std::vector<trace::process_events> processes_in(const std::filesystem::path& folder) {
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    auto name = entry.path().filename().string();
    if (name.starts_with("events-") && name.ends_with(".bin")) files.insert(entry.path());
  }
  if (files.empty())
    throw bad_input(
        "no process was lost, as far as " + folder.string() +
        " tells: expected files events-RANK.I.bin in it, which `troupe launch --log-dir` leaves of lost "
        "processes");
  std::vector<trace::process_events> all;
  for (const auto& file : files) all.push_back(trace::read_events(file));
  return all;
}

std::string name_of(const trace::process_events& process) {
  return std::to_string(process.rank) + "#" + std::to_string(process.incarnation);
}

/// Times of processes of one host are of one clock.
std::int64_t time_ms(const trace::trace_event& event) { return event.end_ns / ns_per_ms; }

json thread_row(const trace::process_events& process, const trace::thread_events& thread) {
  json last;
  if (!thread.events.empty()) last = describe(process, thread.events.back());
  return {{"id", name_of(process) + "/" + thread.name},
          {"parent", name_of(process) + "/process"},
          {"role", "thread"},
          {"rank", process.rank},
          {"state", thread.has_ended ? "ended" : "lost"},
          {"events", thread.num_recorded},
          {"does", last}};
}

}  // namespace

job_snapshot snapshot_of_lost_processes(const std::filesystem::path& folder) {
  json actors = json::array();
  std::vector<std::pair<std::int64_t, std::string>> events;
  std::set<int> ranks;
  for (const auto& process : processes_in(folder)) {
    ranks.insert(process.rank);
    actors.push_back({{"id", name_of(process) + "/process"},
                      {"parent", nullptr},
                      {"role", "process"},
                      {"rank", process.rank},
                      {"pid", process.pid},
                      {"state", "lost"}});
    for (const auto& thread : process.threads) {
      actors.push_back(thread_row(process, thread));
      auto count = std::min(events_of_thread, thread.events.size());
      for (const auto& event : std::span(thread.events).last(count))
        events.emplace_back(time_ms(event),
                            name_of(process) + "/" + thread.name + ": " + describe(process, event));
    }
  }
  std::ranges::stable_sort(events, {}, &std::pair<std::int64_t, std::string>::first);
  json lines = json::array();
  for (auto at = events.size() - std::min(most_events, events.size()); at < events.size(); ++at)
    lines.push_back(
        {{"number", at + 1}, {"at_ms", events[at].first}, {"level", "event"}, {"text", events[at].second}});
  job_snapshot made;
  made.at_ms = events.empty() ? 0 : events.back().first;
  made.parts = {
      {"job",
       {{"job_id", "lost processes in " + folder.string()}, {"world_size", ranks.size()}, {"state", "lost"}}},
      {"actors", {{"actors", actors}}},
      {"log", {{"lines", lines}}}};
  return made;
}

}  // namespace troupe
