#include "bench/data_parallel/best_step.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace troupe::bench {

double best_step(double compute, std::span<const timed_parameter> parameters) {
  std::vector<timed_parameter> in_order(parameters.begin(), parameters.end());
  std::ranges::sort(in_order, {}, &timed_parameter::used);
  double least = compute, moves = 0, ready = std::numeric_limits<double>::infinity();
  for (const auto& each : in_order) {
    moves += each.moves;
    ready = std::min(ready, each.ready);
    least = std::max({least, moves, moves + ready - each.used});
  }
  return least;
}

}  // namespace troupe::bench
