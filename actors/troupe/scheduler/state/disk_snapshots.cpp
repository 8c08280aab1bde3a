#include "troupe/scheduler/state/disk_snapshots.hpp"

#include <algorithm>

namespace troupe::actors::scheduler {

void disk_snapshots::note_since_last(std::chrono::duration<double> since, clock::time_point now) {
  last_ = std::min(last_, now - std::chrono::duration_cast<clock::duration>(since));
}

void disk_snapshots::announced(std::uint64_t step, clock::time_point now) {
  pending_[step];
  last_ = now;
}

std::optional<std::vector<snapshot::manifest_part>> disk_snapshots::add(const messages::part_written& part,
                                                                        std::size_t num_parts) {
  auto found = pending_.find(part.step);
  if (found == pending_.end()) return {};
  if (!part.problem.empty()) {
    pending_.erase(found);
    return {};
  }
  auto& arrived = found->second.parts;
  arrived[part.entry.part] = part.entry;
  if (arrived.size() < num_parts) return {};
  std::vector<snapshot::manifest_part> parts;
  for (const auto& [id, entry] : arrived) parts.push_back(entry);
  return parts;
}

std::vector<std::uint64_t> disk_snapshots::steps_without(const std::vector<layout::part_id>& parts) const {
  std::vector<std::uint64_t> steps;
  for (const auto& [step, one] : pending_)
    if (std::ranges::any_of(parts, [&](const layout::part_id& part) { return !one.parts.contains(part); }))
      steps.push_back(step);
  return steps;
}

std::chrono::duration<double> disk_snapshots::waiting_for(clock::time_point now) const {
  clock::duration longest{0};
  for (const auto& [step, one] : pending_)
    if (one.copied) longest = std::max(longest, now - *one.copied);
  return longest;
}

void disk_snapshots::copied(std::uint64_t step, clock::time_point now) {
  if (auto found = pending_.find(step); found != pending_.end()) found->second.copied = now;
}

void disk_snapshots::ended(std::uint64_t step) { pending_.erase(step); }

}  // namespace troupe::actors::scheduler
