#include "troupe/recovery/holdings.hpp"

#include <algorithm>

namespace troupe {
namespace {

bool has_part(const node_inventory& node, std::uint64_t step, const cell& wanted, part_location location) {
  return std::ranges::any_of(node.parts, [&](const held_part& part) {
    return part.step == step && static_cast<int>(part.stage) == wanted.stage && part.location == location;
  });
}

}  // namespace

std::vector<holding> holdings_of(const std::vector<node_inventory>& inventories, const placement& placed,
                                 std::uint64_t step) {
  std::vector<holding> held;
  for (const auto& node : inventories)
    for (const auto& device : placed.devices()) {
      auto cells = placed.cells_of(device.id);
      auto is_own = [&](const cell& one) { return has_part(node, step, one, part_location::own_memory); };
      auto is_held = [&](const cell& one) {
        return is_own(one) || has_part(node, step, one, part_location::peer_memory);
      };
      if (std::ranges::all_of(cells, is_held))
        held.push_back(
            {{node.rank}, device.id, std::ranges::all_of(cells, is_own) ? held_as::own : held_as::copy});
    }
  return held;
}

}  // namespace troupe
