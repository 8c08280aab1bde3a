#include "troupe/recovery/restore_plan.hpp"

#include <functional>
#include <map>
#include <tuple>

namespace troupe {
namespace {

/// The best source found so far of each stage that has one.
using sources_by_stage = std::map<std::uint32_t, restore_source>;

auto preference(const restore_source& source, int own_rank) {
  return std::tuple(source.location == part_location::disk, source.rank != own_rank, source.location,
                    source.rank);
}

void offer(sources_by_stage& sources, const restore_source& offered, int own_rank) {
  auto [entry, is_first] = sources.try_emplace(offered.stage, offered);
  if (!is_first && preference(offered, own_rank) < preference(entry->second, own_rank))
    entry->second = offered;
}

/// Newest step first.
std::map<std::uint64_t, sources_by_stage, std::greater<>> sources_by_step(
    const std::vector<node_inventory>& inventories, const std::vector<int>& rank_of_stage) {
  std::map<std::uint64_t, sources_by_stage, std::greater<>> steps;
  for (const auto& node : inventories)
    for (const auto& part : node.parts)
      if (part.step > 0 && part.stage < rank_of_stage.size())
        offer(steps[part.step], {part.stage, node.rank, part.location}, rank_of_stage[part.stage]);
  return steps;
}

}  // namespace

restore_plan choose_restore(const std::vector<node_inventory>& inventories, const placement& placed,
                            const hosting& hosts) {
  std::vector<int> rank_of_stage;
  for (const auto& [one, device] : placed.device_of_cell())
    rank_of_stage.push_back(hosts.member_of(device).rank);
  for (const auto& [step, sources] : sources_by_step(inventories, rank_of_stage)) {
    if (sources.size() < rank_of_stage.size()) continue;
    restore_plan plan{step, false, {}};
    for (const auto& [stage, source] : sources) plan.sources.push_back(source);
    return plan;
  }
  return {};
}

}  // namespace troupe
