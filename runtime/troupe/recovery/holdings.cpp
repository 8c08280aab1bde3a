#include "troupe/recovery/holdings.hpp"

#include <algorithm>
#include <optional>

namespace troupe {
namespace {

/// How the process has the part in memory; none: it has not.
std::optional<held_as> in_memory(const process_inventory& process, std::uint64_t step,
                                 const job_part& wanted) {
  std::optional<held_as> found;
  for (const auto& one : process.parts) {
    if (one.step != step || one.location == part_location::disk || !stands_for(one.part, wanted)) continue;
    bool is_own = one.location == part_location::own_memory && one.part == wanted.id;
    if (is_own) return held_as::own;
    found = held_as::copy;
  }
  return found;
}

}  // namespace

std::vector<holding> holdings_of(const std::vector<process_inventory>& inventories,
                                 const std::vector<job_part>& parts, const placement& placed,
                                 std::uint64_t step) {
  std::vector<holding> held;
  for (const auto& process : inventories)
    for (const auto& device : placed.devices()) {
      std::optional<held_as> all = held_as::own;
      for (const auto& part : parts) {
        if (!all || placed.device_of(part.id.of) != device.id) continue;
        auto one = in_memory(process, step, part);
        if (one != held_as::own) all = one;
      }
      if (all) held.push_back({{process.rank}, device.id, *all});
    }
  return held;
}

const hosting& newest_hosting(const std::vector<process_inventory>& inventories, const hosting& home) {
  const past_hosting* newest = nullptr;
  for (const auto& process : inventories)
    if (process.before.hosts.num_devices() == home.num_devices() && process.before.generation > 0 &&
        (!newest || process.before.generation > newest->generation))
      newest = &process.before;
  return newest ? newest->hosts : home;
}

}  // namespace troupe
