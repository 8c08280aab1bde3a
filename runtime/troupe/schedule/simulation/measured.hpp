#pragma once
#include <vector>

#include "troupe/schedule/simulation/simulate.hpp"

namespace troupe::schedule {

/// The timeline of one measured step, to be drawn and compared like a simulated one.
/// `devices[d]`: what device d did, in order, in one unit (seconds, say) of one clock. Time 0 becomes the
/// earliest begin. Throws std::invalid_argument if an action ends before it begins or begins before the one
/// before it has ended.
timeline measured_timeline(std::vector<std::vector<timed_action>> devices);

/// What the time of one step went into.
struct step_summary {
  double span = 0;             ///< from the first begin to the last end
  std::vector<double> busy;    ///< [num_devices]
  std::vector<double> idle;    ///< [num_devices]: span - busy
  double bubble_fraction = 0;  ///< idle's share of all devices' span; 0 if nothing took any time
};

/// A device is busy while it is in an action.
step_summary summarize(const timeline& ran);

/// A device counts as busy for as long as its actions should take by `nominal`: what they took
/// longer counts as idle, so that slow actions cannot hide a bubble.
step_summary summarize(const timeline& ran, const action_costs& nominal);

}  // namespace troupe::schedule
