#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "troupe/trace/process_events.hpp"

namespace troupe::trace {

/// One round trip between two processes, each with its own clock.
struct clock_sample {
  std::int64_t sent_ns = 0;      ///< this process's clock when the request was sent
  std::int64_t remote_ns = 0;    ///< there, between arrival and reply
  std::int64_t received_ns = 0;  ///< this process's clock when the reply came
};

/// What to add to a time of this process to get that of the other one.
struct clock_offset {
  std::int64_t offset_ns = 0;
  std::int64_t error_ns = 0;  ///< the most that it can be wrong by, half of the round trip
  bool operator==(const clock_offset&) const = default;
};

/// From the sample with the shortest round trip: the less time it took, the less of it can have been spent on
/// one way only. (Cristian, Probabilistic clock synchronization, 1989.) Samples whose reply came before the
/// request are ignored. Nothing without a sample.
std::optional<clock_offset> estimate_offset(std::span<const clock_sample> samples);

/// An event of one of several processes.
struct merged_event {
  std::size_t process = 0, thread = 0;  ///< index in what was merged
  trace_event event;                    ///< with times of the reference clock
  bool operator==(const merged_event&) const = default;
};

/// All events in the order of their ends, by the clock of the process to which `offset_of_rank` refers: what
/// to add to a time of that rank. A rank without an offset has the reference's clock. Events of one thread
/// keep their order.
std::vector<merged_event> merge_events(const std::vector<process_events>& processes,
                                       const std::map<int, std::int64_t>& offset_of_rank);

}  // namespace troupe::trace
