#include "troupe/recovery/holdings.hpp"

#include <algorithm>
#include <optional>

namespace troupe::recovery {
namespace {

/// How the process has the part in memory; none: it has not.
std::optional<mesh::held_as> in_memory(const process_inventory& process, std::uint64_t step,
                                       const layout::job_part& wanted) {
  std::optional<mesh::held_as> found;
  for (const auto& one : process.parts) {
    if (one.step != step || one.location == part_location::disk || !stands_for(one.part, wanted)) continue;
    bool is_own = one.location == part_location::own_memory && one.part == wanted.id;
    if (is_own) return mesh::held_as::own;
    found = mesh::held_as::copy;
  }
  return found;
}

}  // namespace

std::vector<mesh::holding> holdings_of(const std::vector<process_inventory>& inventories,
                                       const std::vector<layout::job_part>& parts,
                                       const mesh::placement& placed, std::uint64_t step) {
  std::vector<mesh::holding> held;
  for (const auto& process : inventories)
    for (const auto& device : placed.devices()) {
      std::optional<mesh::held_as> all = mesh::held_as::own;
      for (const auto& part : parts) {
        if (!all || placed.device_of(part.id) != device.id) continue;
        auto one = in_memory(process, step, part);
        if (one != mesh::held_as::own) all = one;
      }
      if (all) held.push_back({{process.rank}, device.id, *all});
    }
  return held;
}

const mesh::hosting& newest_hosting(const std::vector<process_inventory>& inventories,
                                    const mesh::hosting& home) {
  const past_hosting* newest = nullptr;
  for (const auto& process : inventories)
    if (process.before.hosts.num_devices() == home.num_devices() && process.before.generation > 0 &&
        (!newest || process.before.generation > newest->generation))
      newest = &process.before;
  return newest ? newest->hosts : home;
}

}  // namespace troupe::recovery
