#include "troupe/job/step_timeline.hpp"

#include <string>
#include <utility>

#include "troupe/error/errors.hpp"

namespace troupe::actors::job {

timeline timeline_of(const std::vector<measured_action>& actions, int num_devices, double per_nanosecond) {
  std::vector<std::vector<timed_action>> devices(static_cast<std::size_t>(num_devices));
  for (const auto& one : actions) {
    if (one.device >= devices.size())
      throw_invalid("timeline_of", "a device from 0 to " + std::to_string(num_devices - 1),
                    std::to_string(one.device));
    devices[one.device].push_back({{static_cast<int>(one.stage), one.kind, static_cast<int>(one.microbatch)},
                                   static_cast<double>(one.begin_ns) * per_nanosecond,
                                   static_cast<double>(one.end_ns) * per_nanosecond});
  }
  return schedule::measured_timeline(std::move(devices));
}

}  // namespace troupe::actors::job
