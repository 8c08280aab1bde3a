#include "troupe/scheduler/disk_snapshots.hpp"

namespace troupe {

void disk_snapshots::announced(std::uint64_t step, clock::time_point now) {
  pending_[step];
  last_ = now;
}

std::optional<std::vector<manifest_part>> disk_snapshots::add(const part_written& part,
                                                              std::uint32_t num_stages) {
  auto found = pending_.find(part.step);
  if (found == pending_.end()) return {};
  if (!part.problem.empty()) {
    pending_.erase(found);
    return {};
  }
  found->second[part.stage] = {part.stage, part.file, part.size_bytes, part.checksum, part.host};
  if (found->second.size() < num_stages) return {};
  std::vector<manifest_part> parts;
  for (const auto& [stage, entry] : found->second) parts.push_back(entry);
  return parts;
}

void disk_snapshots::ended(std::uint64_t step) { pending_.erase(step); }

}  // namespace troupe
