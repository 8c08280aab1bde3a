#include "troupe/recovery/retention.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>

namespace troupe {
namespace {

/// Who holds one part of one step.
struct part_holders {
  std::set<int> in_memory;
  bool on_disk = false;
  bool outlive_one_loss(std::size_t num_nodes) const {
    return on_disk || in_memory.size() >= std::min<std::size_t>(2, num_nodes);
  }
};

using holders_by_stage = std::map<std::uint32_t, part_holders>;

void note(part_holders& holders, int rank, part_place place) {
  if (place == part_place::disk)
    holders.on_disk = true;
  else
    holders.in_memory.insert(rank);
}

}  // namespace

std::uint64_t newest_committed_step(const std::vector<node_inventory>& inventories,
                                    std::uint32_t num_stages) {
  std::map<std::uint64_t, holders_by_stage, std::greater<>> steps;
  for (const auto& node : inventories)
    for (const auto& part : node.parts)
      if (part.stage < num_stages) note(steps[part.step][part.stage], node.rank, part.place);
  auto is_safe = [&](const auto& stage) { return stage.second.outlive_one_loss(inventories.size()); };
  for (const auto& [step, stages] : steps)
    if (stages.size() == num_stages && std::ranges::all_of(stages, is_safe)) return step;
  return 0;
}

std::vector<held_part> droppable_parts(const std::vector<held_part>& held, std::uint64_t committed) {
  std::vector<held_part> droppable;
  std::ranges::copy_if(held, std::back_inserter(droppable), [&](const held_part& part) {
    return part.step < committed && part.place != part_place::disk;
  });
  return droppable;
}

}  // namespace troupe
