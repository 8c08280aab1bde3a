#pragma once
#include <vector>

#include "troupe/schedule/plan.hpp"

namespace troupe::schedule {

/// Merges the stages' own orders into one order per device, which keeps each stage's own.
///
/// `orders[s]` is what stage s of `graph` does, made of F, B, I and W, each by ascending microbatches, and of
/// R and A. Together they must have no cycle when every stage has a device of its own. Then the result has
/// none either, because it is the order of a simulated run. `made` says which devices there are, which of
/// them each stage is on, and which reductions there are.
std::vector<std::vector<action>> merge_stages(const std::vector<std::vector<action>>& orders,
                                              const stage_graph& graph, const plan& made);

}  // namespace troupe::schedule
