#include "troupe/recovery/retention.hpp"

#include <algorithm>
#include <functional>
#include <iterator>

namespace troupe {
void step_holders::add(int rank, const held_part& part) {
  auto& holders = stages_[part.stage];
  if (part.location == part_location::disk)
    holders.on_disk = true;
  else
    holders.in_memory.insert(rank);
}

bool step_holders::outlives_one_loss(std::size_t num_nodes, std::uint32_t num_stages) const {
  auto is_safe = [&](const auto& stage) {
    return stage.second.on_disk || stage.second.in_memory.size() >= std::min<std::size_t>(2, num_nodes);
  };
  return stages_.size() == num_stages && std::ranges::all_of(stages_, is_safe);
}

std::uint64_t newest_committed_step(const std::vector<node_inventory>& inventories,
                                    std::uint32_t num_stages) {
  std::map<std::uint64_t, step_holders, std::greater<>> steps;
  for (const auto& node : inventories)
    for (const auto& part : node.parts)
      if (part.stage < num_stages) steps[part.step].add(node.rank, part);
  for (const auto& [step, holders] : steps)
    if (holders.outlives_one_loss(inventories.size(), num_stages)) return step;
  return 0;
}

std::vector<held_part> droppable_parts(const std::vector<held_part>& held, std::uint64_t committed) {
  std::vector<held_part> droppable;
  std::ranges::copy_if(held, std::back_inserter(droppable), [&](const held_part& part) {
    return part.step < committed && part.location != part_location::disk;
  });
  return droppable;
}

}  // namespace troupe
