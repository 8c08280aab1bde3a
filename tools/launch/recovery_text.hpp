#pragma once
#include <cstdint>
#include <string>

#include "troupe/cluster/membership.hpp"

namespace troupe {

/// One line for people, without a line end: the lost rank, the cause, and the time until the next step was
/// done. `step`: the number of steps done at the loss; `num_kept`: the number of processes that kept running.
std::string recovery_line(const recovery_report& report, std::uint64_t step, int num_kept);
/// The same as one JSON object:
/// {"event":"recovery","rank":..,"seconds":..,"cause":..,"step":..,"generation":.., "detect":.., ...
/// "replay":..}, times in seconds.
std::string recovery_json(const recovery_report& report, std::uint64_t step, int num_kept);
/// "rank 2 was killed by SIGKILL", "rank 2 ended with exit code 3", "an actor failed (cause)"
std::string describe_loss(const member_loss& loss);

}  // namespace troupe
