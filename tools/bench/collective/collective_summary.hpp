#pragma once
#include <vector>

#include "bench/collective/collective_sample.hpp"
#include "bench/measure/spread.hpp"

namespace troupe::bench {

/// What samples of one size come to, in microseconds. Ratios are of what was measured within one sample; the
/// peers', which run in processes of their own, are of the medians.
struct collective_summary {
  spread probe, memcpy, own, foreign, gloo, open_mpi;
  spread own_over_memcpy, foreign_over_memcpy;
  double gloo_over_own = 0, open_mpi_over_own = 0;  ///< 0: not measured

  static collective_summary of(const std::vector<collective_sample>& samples);
  /// null for what was not measured.
  nlohmann::ordered_json json() const;
};

/// The samples on one side of a time that the probe took.
std::vector<collective_sample> faster_than(double probe_us, const std::vector<collective_sample>& samples);
std::vector<collective_sample> slower_than(double probe_us, const std::vector<collective_sample>& samples);

}  // namespace troupe::bench
