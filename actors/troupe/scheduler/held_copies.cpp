#include "troupe/scheduler/held_copies.hpp"

#include "troupe/recovery/retention.hpp"

namespace troupe {

void held_copies::add(int rank, const held_part& part, std::uint32_t num_stages) {
  auto& node = nodes_[rank];
  node.rank = rank;
  node.parts.push_back(part);
  auto committed = committed_step(num_stages);
  for (auto& [other_rank, other] : nodes_)
    std::erase_if(other.parts, [&](const held_part& old) { return old.step < committed; });
}

void held_copies::roll_back(const restore_plan& plan) {
  for (auto& [rank, node] : nodes_)
    std::erase_if(node.parts,
                  [&](const held_part& part) { return plan.from_scratch || part.step > plan.step; });
}

std::vector<node_inventory> held_copies::inventories() const {
  std::vector<node_inventory> all;
  for (const auto& [rank, node] : nodes_) all.push_back(node);
  return all;
}

std::uint64_t held_copies::committed_step(std::uint32_t num_stages) const {
  return newest_committed_step(inventories(), num_stages);
}

std::size_t held_copies::num_uncommitted(std::uint32_t num_stages) {
  ordered_.erase(ordered_.begin(), ordered_.upper_bound(committed_step(num_stages)));
  return ordered_.size();
}

}  // namespace troupe
