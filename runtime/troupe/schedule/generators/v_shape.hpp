#pragma once
#include <algorithm>

namespace troupe::schedule {

/// The first stages lie on the devices in order, the second ones in reverse: device d of p has the stages d
/// and 2p - 1 - d. So the first device has the first and the last stage, and a microbatch turns round on the
/// last device without a transfer.
inline int v_shape_device(int stage, int num_devices) { return std::min(stage, 2 * num_devices - 1 - stage); }

}  // namespace troupe::schedule
