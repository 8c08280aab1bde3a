#pragma once
#include <cstdint>
#include <vector>

#include "troupe/mesh/hosting.hpp"
#include "troupe/recovery/inventory.hpp"

namespace troupe {

/// The devices whose parts of `step` a member has in memory, all of them: what assign prefers. own: it made
/// all of them itself.
std::vector<holding> holdings_of(const std::vector<process_inventory>& inventories,
                                 const std::vector<job_part>& parts, const placement& placed,
                                 std::uint64_t step);

/// Where the devices were: what the process says that has seen the newest generation, `home` if none has seen
/// one.
const hosting& newest_hosting(const std::vector<process_inventory>& inventories, const hosting& home);

}  // namespace troupe
