#pragma once
#include <vector>

#include "troupe/world.hpp"

namespace troupe::bench {

/// Groups of all first processes of a job, each with a call under way that nobody waits for: the loss of a
/// process ends them. A successor of a lost process has none. Rank 0 prints
/// {"event":"groups","made_s":..,"threads":..,"bytes_per_group":..}:
/// - made_s: the time from the first group to the last one
/// - threads: the threads of the process with all calls under way
/// - bytes_per_group: what its memory and its part of what it shares with others (Pss) grew by from the first
///   to the last
class kept_groups {
 public:
  kept_groups(World world, int num_groups);

 private:
  void add(World& world);
  void report(double made_s, std::int64_t added_bytes) const;

  std::vector<ProcessGroup> groups_;
};

}  // namespace troupe::bench
