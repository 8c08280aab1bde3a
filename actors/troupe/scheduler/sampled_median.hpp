#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe {

/// The median of any number of values in bounded memory. Up to `most_kept` of them it is exact; beyond, it is
/// that of every second, fourth, ... value, of which there are between most_kept / 2 and most_kept. Where
/// values come in no order of size, its rank among all of them is off by 1.6 % of their number (one standard
/// deviation: 1 / (2 sqrt(1024))) or less.
class sampled_median {
 public:
  static constexpr std::size_t most_kept = 2048;
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
