#include "jobs/inspection/trace_export.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace troupe::testing {
namespace {

using json = nlohmann::json;

bool is_time(const json& event, const char* field) {
  return event.contains(field) && event[field].is_number() && event[field] >= 0;
}

std::int64_t nanoseconds(const json& microseconds) { return std::llround(microseconds.get<double>() * 1000); }

/// What an event lacks that its phase must have; empty: nothing.
std::string missing_in(const json& event) {
  if (!event.is_object() || !event.contains("ph") || !event["ph"].is_string()) return "has no phase";
  std::string phase = event["ph"];
  for (const char* field : {"pid", "tid"})
    if (!event.contains(field) || !event[field].is_number_integer() || event[field] <= 0)
      return std::string("has no ") + field;
  if (!event.contains("name") || !event["name"].is_string() || event["name"] == "") return "has no name";
  if (phase == "M") return event.contains("args") && event["args"].is_object() ? "" : "has no args";
  if (!is_time(event, "ts")) return "has no ts";
  if (phase == "X") return is_time(event, "dur") ? "" : "has no dur";
  if (phase == "i") return event.value("s", "") == "t" ? "" : "has no scope";
  if (phase == "B") return "";
  if (phase != "s" && phase != "f") return "has a phase that is not documented";
  if (!event.contains("id") || !event["id"].is_string() || !event.contains("cat")) return "has no id or cat";
  return phase == "s" || event.value("bp", "") == "e" ? "" : "binds to the next slice";
}

std::string text_of(const std::pair<int, int>& thread) {
  return "process " + std::to_string(thread.first) + " thread " + std::to_string(thread.second);
}

}  // namespace

trace_export::trace_export(const json& read) {
  if (!read.is_object() || !read.contains("traceEvents") || !read["traceEvents"].is_array()) {
    problems.emplace_back("there is no list traceEvents");
    return;
  }
  for (const auto& event : read["traceEvents"]) {
    if (auto missing = missing_in(event); !missing.empty()) {
      problems.push_back(event.dump() + " " + missing);
      continue;
    }
    std::pair<int, int> at{event["pid"], event["tid"]};
    std::string phase = event["ph"], name = event["name"];
    if (name == "process_name") process_names[at.first] = event["args"].value("name", "");
    if (name == "thread_name") threads[at].name = event["args"].value("name", "");
    if (phase == "s" || phase == "f")
      (phase == "s" ? begins : ends).push_back({event["id"], at, nanoseconds(event["ts"])});
    if (phase != "X") continue;
    auto begin = nanoseconds(event["ts"]);
    threads[at].slices.push_back(
        {name, begin, begin + nanoseconds(event["dur"]), event.value("args", json::object())});
  }
  for (auto& [at, one] : threads) {
    if (one.name.empty() || process_names[at.first].empty()) problems.push_back(text_of(at) + " has no name");
    std::ranges::stable_sort(one.slices, [](const trace_slice& left, const trace_slice& right) {
      return std::tuple(left.begin_ns, -left.end_ns) < std::tuple(right.begin_ns, -right.end_ns);
    });
  }
}

std::vector<std::string> trace_export::overlaps() const {
  std::vector<std::string> found;
  for (const auto& [at, one] : threads) {
    std::vector<const trace_slice*> open;
    for (const auto& slice : one.slices) {
      while (!open.empty() && open.back()->end_ns <= slice.begin_ns) open.pop_back();
      if (!open.empty() && open.back()->end_ns < slice.end_ns)
        found.push_back(text_of(at) + ": " + slice.name + " at " + std::to_string(slice.begin_ns) +
                        " ends after " + open.back()->name + " in which it begins");
      open.push_back(&slice);
    }
  }
  return found;
}

std::vector<std::string> trace_export::arrow_problems() const {
  std::vector<std::string> found;
  auto check_slice = [&](const arrow_end& end) {
    const auto& slices = threads.at(end.at).slices;
    if (std::ranges::none_of(slices, [&](const trace_slice& slice) {
          return slice.begin_ns <= end.at_ns && end.at_ns <= slice.end_ns;
        }))
      found.push_back(text_of(end.at) + ": arrow " + end.id + " is in no slice");
  };
  std::map<std::string, std::int64_t> begun, ended;
  for (const auto& one : begins) {
    check_slice(one);
    if (!begun.emplace(one.id, one.at_ns).second) found.push_back("arrow " + one.id + " begins twice");
  }
  for (const auto& one : ends) {
    check_slice(one);
    if (!ended.emplace(one.id, one.at_ns).second) found.push_back("arrow " + one.id + " ends twice");
    auto from = begun.find(one.id);
    if (from != begun.end() && one.at_ns < from->second)
      found.push_back("arrow " + one.id + " ends before it begins");
  }
  return found;
}

std::size_t trace_export::num_arrows() const {
  std::map<std::string, int> ends_of;
  for (const auto& one : ends) ends_of[one.id] = 1;
  return static_cast<std::size_t>(
      std::ranges::count_if(begins, [&](const arrow_end& one) { return ends_of.contains(one.id); }));
}

}  // namespace troupe::testing
