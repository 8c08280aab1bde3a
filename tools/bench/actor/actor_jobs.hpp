#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace troupe::bench {

/// What two processes of `troupe bench actor` measure, with a probe actor each.
struct probe_job {
  std::int64_t size_bytes = 8;
  std::uint64_t round_trips = 1;
  std::uint64_t stream_messages = 1;
  std::uint64_t window = 8;  ///< messages of the stream that may be unanswered
  std::int64_t spin_us = 0;  ///< how long a probe polls before it sleeps
  std::string transports;    ///< of UCX; empty: those of a job
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(probe_job, size_bytes, round_trips, stream_messages, window,
                                                spin_us, transports)

/// A pipeline of synthetic stages, one a process.
struct hop_job {
  int microbatches = 1;
  std::uint64_t steps = 1;
  std::int64_t size_bytes = 4;
  std::string schedule = "1f1b";
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(hop_job, microbatches, steps, size_bytes, schedule)

}  // namespace troupe::bench
