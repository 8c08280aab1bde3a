#include "troupe/recovery/restore_plan.hpp"

#include <functional>
#include <map>
#include <optional>
#include <tuple>

namespace troupe::recovery {
namespace {

/// What a process holds of one step.
struct offered_part {
  std::int32_t rank = 0;
  part_location location = part_location::own_memory;
};
/// By the replica-independent id: with replica 0.
using offers = std::multimap<layout::part_id, std::pair<layout::part_id, offered_part>>;

auto preference(const restore_source& source, world_rank host) {
  return std::tuple(source.location == part_location::disk, source.rank != host, source.held != source.part,
                    source.location, source.rank, source.held);
}

std::optional<restore_source> best_source(const offers& offered, const layout::job_part& wanted,
                                          world_rank host) {
  std::optional<restore_source> best;
  auto [begin, end] = offered.equal_range(without_replica(wanted.id));
  for (auto one = begin; one != end; ++one) {
    const auto& [held, from] = one->second;
    if (!stands_for(held, wanted)) continue;
    restore_source source{wanted.id, from.rank, from.location, held};
    if (!best || preference(source, host) < preference(*best, host)) best = source;
  }
  return best;
}

/// Newest step first.
std::map<std::uint64_t, offers, std::greater<>> offers_by_step(
    const std::vector<process_inventory>& inventories) {
  std::map<std::uint64_t, offers, std::greater<>> steps;
  for (const auto& process : inventories)
    for (const auto& one : process.parts)
      if (one.step > 0)
        steps[one.step].insert({without_replica(one.part), {one.part, {process.rank, one.location}}});
  return steps;
}

}  // namespace

restore_plan choose_restore(const std::vector<process_inventory>& inventories,
                            const std::vector<layout::job_part>& parts, const mesh::placement& placed,
                            const mesh::hosting& hosts) {
  for (const auto& [step, offered] : offers_by_step(inventories)) {
    restore_plan plan{step, false, {}};
    for (const auto& wanted : parts) {
      auto source = best_source(offered, wanted, host_of(placed, hosts, wanted.id));
      if (!source) break;
      plan.sources.push_back(*source);
    }
    if (plan.sources.size() == parts.size()) return plan;
  }
  return {};
}

}  // namespace troupe::recovery
