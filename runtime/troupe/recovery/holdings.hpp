#pragma once
#include <cstdint>
#include <vector>

#include "troupe/placement/hosting.hpp"
#include "troupe/recovery/inventory.hpp"

namespace troupe {

/// The devices whose cells' states of `step` a member has in memory, all of them: what assign prefers. own:
/// it made all of them itself.
std::vector<holding> holdings_of(const std::vector<node_inventory>& inventories, const placement& placed,
                                 std::uint64_t step);

}  // namespace troupe
