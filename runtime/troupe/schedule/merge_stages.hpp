#pragma once
#include <vector>

#include "troupe/schedule/plan.hpp"

namespace troupe {

/// Merges the stages' own orders into one order per device, which keeps each stage's own.
///
/// `orders[s]` is what stage s of `graph` does, made of F, B, I and W, each by ascending microbatches;
/// together they must have no cycle when every stage has a device of its own. Then the result has none
/// either, because it is the order of a simulated run. `device_of_stage`: [num_stages], from 0 to num_devices
/// - 1, in any placement.
std::vector<std::vector<action>> merge_stages(const std::vector<std::vector<action>>& orders,
                                              const stage_graph& graph,
                                              const std::vector<int>& device_of_stage, int num_devices);

}  // namespace troupe
