#pragma once
#include <vector>

#include "troupe/job/call.hpp"
#include "troupe/schedule/simulation/measured.hpp"

namespace troupe::actors::job {

/// What the devices of a job did in a measured step, to be drawn and compared like a simulated step. Times
/// in units of which a nanosecond has `per_nanosecond`: 1e-9 for seconds. `actions`: each device's in order.
/// Throws std::invalid_argument for a device beyond `num_devices`, and as measured_timeline does.
timeline timeline_of(const std::vector<measured_action>& actions, int num_devices, double per_nanosecond);

}  // namespace troupe::actors::job
