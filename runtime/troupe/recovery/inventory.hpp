#pragma once
#include <cstdint>
#include <vector>

#include "troupe/layout/part_id.hpp"
#include "troupe/mesh/hosting.hpp"

namespace troupe::recovery {

/// Where a process holds a copy of a part. own_memory: it made the part itself; peer_memory: it keeps it for
/// another process; disk: it can read it from a committed snapshot. In the order in which a restore prefers
/// them.
enum class part_location : std::uint8_t { own_memory = 0, peer_memory = 1, disk = 2 };

/// One copy of a part that a process holds.
struct held_part {
  std::uint64_t step = 0;  ///< optimizer steps applied before the copy
  layout::part_id part;
  std::uint64_t generation = 0;  ///< the generation that computed it
  part_location location = part_location::own_memory;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(step, part, generation, location);
  }
  bool operator==(const held_part&) const = default;
};

/// Who hosted which device in a generation.
struct past_hosting {
  std::uint64_t generation = 0;  ///< 0: none is known
  mesh::hosting hosts;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, hosts);
  }
  bool operator==(const past_hosting&) const = default;
};

/// The copies that one process holds. A process that was just respawned has only those on disk.
struct process_inventory {
  std::int32_t rank = 0;
  /// Seconds since the newest snapshot on disk was written, or since the job began, as far as this process
  /// knows. 0: a process that has just started and knows nothing.
  double since_disk_s = 0;
  std::vector<held_part> parts;
  /// The newest committed step reported to this process. A job that can only be restored from an older step
  /// has lost committed work. 0: none, or the process has just started.
  std::uint64_t committed_step = 0;
  /// Of the newest generation in which this process was to restore this job.
  past_hosting before = {};

  template <class Archive>
  void serialize(Archive& archive) {
    archive(rank, since_disk_s, parts, committed_step, before);
  }
  bool operator==(const process_inventory&) const = default;
};

}  // namespace troupe::recovery
