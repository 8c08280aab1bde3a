#pragma once
#include <cstdint>
#include <vector>

namespace troupe::bench {

/// One process to be lost.
struct planned_kill {
  int rank = 0;
  std::uint64_t step = 0;     ///< as soon as so many steps are done and the loss before is made up for
  double into_next_step = 0;  ///< and so much of a step has passed since then, in [0, 1)
};

struct kill_plan_options {
  int num_kills = 20;
  std::vector<int> ranks;  ///< in turn
  std::uint64_t least_steps_between = 20;
  std::uint64_t most_steps_between = 60;
  std::uint64_t seed = 1;
};

/// The same for the same options everywhere.
std::vector<planned_kill> plan_kills(const kill_plan_options& options);

}  // namespace troupe::bench
