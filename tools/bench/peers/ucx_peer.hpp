#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace troupe::bench {

/// Whether ucx_perftest is installed (Debian: ucx-utils).
bool has_ucx_perftest();

/// What ucx_perftest measures, with its active messages.
struct ucx_test {
  std::string name = "ucp_am_lat";  ///< or "ucp_am_bw"
  bool sleeps = false;              ///< waits in sleeping mode (`-E sleep`)
  std::int64_t size_bytes = 8;
  std::int64_t iterations = 1;
  std::string transports;  ///< none: those of a job on one host
};

/// Of one run: `us` a message, one way.
struct ucx_figures {
  double median_us = 0, mean_us = 0;
  double GBps = 0;  ///< of 10^9 bytes
};

/// None if it could not be measured.
std::optional<ucx_figures> run_ucx_perftest(const ucx_test& test);

}  // namespace troupe::bench
