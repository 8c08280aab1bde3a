#include "troupe/scheduler/disk_snapshots.hpp"

#include <algorithm>

namespace troupe {

void disk_snapshots::note_since_last(std::chrono::duration<double> since, clock::time_point now) {
  last_ = std::min(last_, now - std::chrono::duration_cast<clock::duration>(since));
}

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
