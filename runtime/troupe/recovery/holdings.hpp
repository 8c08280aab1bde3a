#pragma once
#include <cstdint>
#include <vector>

#include "troupe/mesh/hosting.hpp"
#include "troupe/recovery/inventory.hpp"

namespace troupe::recovery {

/// The devices whose parts of `step` a member has in memory, all of them: what assign prefers. own: it made
/// all of them itself.
std::vector<mesh::holding> holdings_of(const std::vector<process_inventory>& inventories,
                                       const std::vector<layout::job_part>& parts,
                                       const mesh::placement& placed, std::uint64_t step);

/// Where the devices were: what the process says that has seen the newest generation, `home` if none has seen
/// one.
const mesh::hosting& newest_hosting(const std::vector<process_inventory>& inventories,
                                    const mesh::hosting& home);

}  // namespace troupe::recovery
