#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace troupe::bench {

/// What two processes of `troupe bench actor` measure, with a probe actor each.
struct probe_job {
  std::int64_t size_bytes = 8;
  std::uint64_t round_trips = 1;
  std::uint64_t stream_messages = 1;
  std::int64_t spin_us = 0;  ///< how long a probe polls before it sleeps
  std::string transports;    ///< of UCX; empty: those of a job
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(probe_job, size_bytes, round_trips, stream_messages, spin_us,
                                                transports)

/// Runs one of the two processes. Rank 0 prints the times of half a round trip and the rate of a stream.
void run_probe(const probe_job& job);

}  // namespace troupe::bench
