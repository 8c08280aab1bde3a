#pragma once
#include <vector>

#include "troupe/schedule/simulation/simulate.hpp"

namespace troupe::testing {

/// What `simulate` should say, found in another way: devices run their lists, one action after the other, as
/// far as tensors are there, until all are at their end. Returns a timeline with fewer actions than the plan
/// if they get stuck.
timeline reference_simulation(const plan& run, const action_costs& costs);
/// With a time for each action.
timeline reference_simulation(const plan& run, const std::function<action_time(const action&)>& time_of,
                              double communication);

/// From a device's first begin to its last end, less its work: what it idles if steps follow each other
/// without a wait for all devices.
double own_idle(const std::vector<timed_action>& device);

}  // namespace troupe::testing
