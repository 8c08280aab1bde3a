#pragma once
#include <optional>
#include <vector>

namespace troupe::bench {

/// Whether a machine ran at two speeds while these times were taken: the time that parts the fast ones from
/// the slow ones, in the middle of the widest gap (by ratio) that has a tenth of the times on either side, if
/// the medians of the sides differ by half or more. Nothing for one speed, and for fewer than eight times.
std::optional<double> parting_of(std::vector<double> times);

}  // namespace troupe::bench
