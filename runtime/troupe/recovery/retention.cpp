#include "troupe/recovery/retention.hpp"

#include <algorithm>
#include <functional>
#include <iterator>

namespace troupe::recovery {
void step_holders::add(int rank, const held_part& part) {
  auto& holders = holders_[without_replica(part.part)][part.part.cell.replica];
  if (part.location == part_location::disk)
    holders.on_disk = true;
  else
    holders.in_memory.insert(rank);
}

bool step_holders::is_safe(const layout::job_part& part, std::size_t num_nodes) const {
  auto found = holders_.find(without_replica(part.id));
  if (found == holders_.end()) return false;
  std::set<int> in_memory;
  for (const auto& [replica, holders] : found->second) {
    if (part.content == layout::replica_content::own && replica != part.id.cell.replica) continue;
    if (holders.on_disk) return true;
    in_memory.insert(holders.in_memory.begin(), holders.in_memory.end());
  }
  return in_memory.size() >= std::min<std::size_t>(2, num_nodes);
}

bool step_holders::outlives_one_loss(std::size_t num_nodes,
                                     const std::vector<layout::job_part>& parts) const {
  return std::ranges::all_of(parts, [&](const layout::job_part& part) { return is_safe(part, num_nodes); });
}

std::uint64_t newest_committed_step(const std::vector<process_inventory>& inventories,
                                    const std::vector<layout::job_part>& parts) {
  std::map<std::uint64_t, step_holders, std::greater<>> steps;
  for (const auto& process : inventories)
    for (const auto& part : process.parts) steps[part.step].add(process.rank, part);
  for (const auto& [step, holders] : steps)
    if (holders.outlives_one_loss(inventories.size(), parts)) return step;
  return 0;
}

std::vector<held_part> droppable_parts(const std::vector<held_part>& held, std::uint64_t committed) {
  std::vector<held_part> droppable;
  std::ranges::copy_if(held, std::back_inserter(droppable), [&](const held_part& part) {
    return part.step < committed && part.location != part_location::disk;
  });
  return droppable;
}

}  // namespace troupe::recovery
