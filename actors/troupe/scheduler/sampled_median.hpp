#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe {

/// The median of any number of values in bounded memory. It is exact for up to `max_kept` values. Beyond, it
/// is the median of a systematic sample: of every second, fourth, eighth ... value, between max_kept / 2 and
/// max_kept of them. For values in random order the rank of the result is off by at most 1.6 % of their
/// number (one standard deviation, 1 / (2 sqrt(1024))).
class sampled_median {
 public:
  static constexpr std::size_t max_kept = 2048;
  void add(double value);
  /// 0 if there are none.
  double median() const;
  std::size_t num_kept() const { return kept_.size(); }

 private:
  std::vector<double> kept_;  ///< every `stride_`th value, from the first on
  std::uint64_t stride_ = 1;
  std::uint64_t num_seen_ = 0;
};

}  // namespace troupe
