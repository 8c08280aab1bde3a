#include "troupe/trace/trace_event.hpp"

#include <array>
#include <chrono>

namespace troupe::trace {
namespace {

constexpr std::array<std::string_view, num_trace_kinds> kind_names = {"F",
                                                                      "B",
                                                                      "I",
                                                                      "W",
                                                                      "R",
                                                                      "apply",
                                                                      "copy_state",
                                                                      "write_part",
                                                                      "commit",
                                                                      "quiesce",
                                                                      "restore",
                                                                      "fence",
                                                                      "view",
                                                                      "step",
                                                                      "G",
                                                                      "action begun",
                                                                      "collective begun",
                                                                      "collective",
                                                                      "send",
                                                                      "receive",
                                                                      "wait begun",
                                                                      "wait",
                                                                      "actor born",
                                                                      "actor failed",
                                                                      "actor restarted"};

constexpr std::array<std::string_view, 4> reason_names = {"tensor", "samples", "collective", "state copy"};

}  // namespace

std::string_view to_string(trace_kind kind) {
  auto index = static_cast<std::size_t>(kind);
  return index < kind_names.size() ? kind_names[index] : "unknown";
}

std::string_view to_string(wait_reason reason) {
  auto index = static_cast<std::size_t>(reason);
  return index < reason_names.size() ? reason_names[index] : "unknown";
}

std::int64_t now_ns() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

}  // namespace troupe::trace
