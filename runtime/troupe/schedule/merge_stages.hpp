#pragma once
#include <vector>

#include "troupe/schedule/plan.hpp"

namespace troupe {

/// Merges the stages' own orders into one order per device, which keeps each stage's own.
///
/// `orders[s]` is what stage s does, made of F and B; together they must be free of circles when every
/// stage has a device to itself. Then the result is free of them too, because it is the record of a run.
std::vector<std::vector<action>> merge_stages(const std::vector<std::vector<action>>& orders,
                                              const std::vector<int>& device_of_stage, int num_devices);

}  // namespace troupe
