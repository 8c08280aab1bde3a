#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace troupe::bench {

/// What ucx_perftest (Debian: ucx-utils) measures, with its active messages.
struct ucx_perftest_options {
  std::string test = "ucp_am_lat";  ///< or "ucp_am_bw"
  bool sleeps = false;              ///< wait in sleeping mode (`-E sleep`)
  std::int64_t size_bytes = 8;
  std::int64_t iterations = 1;
  std::string transports;  ///< empty: those of a job on one host
};

/// Of one run; latencies are one way.
struct ucx_perftest_result {
  double median_us = 0, mean_us = 0;
  double GBps = 0;  ///< of 10^9 bytes
};

/// Nothing if ucx_perftest is not installed or measured nothing.
std::optional<ucx_perftest_result> run_ucx_perftest(const ucx_perftest_options& options);

}  // namespace troupe::bench
