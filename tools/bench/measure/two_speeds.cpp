#include "bench/measure/two_speeds.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::bench {

std::optional<double> parting_of(std::vector<double> times) {
  constexpr std::size_t fewest = 8;
  constexpr double least_ratio = 1.5;
  if (times.size() < fewest) return {};
  std::ranges::sort(times);
  auto on_a_side = std::max<std::size_t>(2, times.size() / 10);
  auto widest = on_a_side;  // the first of the slow ones
  for (auto i = on_a_side; i + on_a_side <= times.size(); ++i)
    if (times[i] * times[widest - 1] > times[widest] * times[i - 1]) widest = i;
  auto fast = times[(widest - 1) / 2], slow = times[widest + (times.size() - widest) / 2];
  if (slow < least_ratio * fast) return {};
  return std::sqrt(times[widest - 1] * times[widest]);
}

}  // namespace troupe::bench
