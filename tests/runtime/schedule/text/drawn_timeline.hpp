#pragma once

#include "troupe/schedule/plan.hpp"
#include "troupe/schedule/simulation/simulate.hpp"

namespace troupe::testing {

/// What a test draws: 1F1B as it is simulated.
inline timeline timeline_of(int num_stages, int num_microbatches, int num_devices, action_costs costs = {}) {
  return simulate(make_plan({.kind = schedule_kind::one_f_one_b,
                             .num_stages = num_stages,
                             .num_microbatches = num_microbatches,
                             .num_devices = num_devices}),
                  costs);
}

}  // namespace troupe::testing
