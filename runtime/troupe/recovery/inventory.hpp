#pragma once
#include <cstdint>
#include <vector>

namespace troupe {

/// Where a node holds a copy of a part. own_memory: it made the part itself; peer_memory: it keeps it for
/// another node; disk: it can read it from a committed snapshot. In the order in which a restore prefers
/// them.
enum class part_place : std::uint8_t { own_memory = 0, peer_memory = 1, disk = 2 };

/// One copy of one stage's part in the hands of one node.
struct held_part {
  std::uint64_t step = 0;  ///< optimizer steps applied
  std::uint32_t stage = 0;
  std::uint64_t generation = 0;  ///< that made it
  part_place place = part_place::own_memory;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(step, stage, generation, place);
  }
  bool operator==(const held_part&) const = default;
};

/// What one node could give to a recovery. A node that was just respawned has nothing but what lies on disk.
struct node_inventory {
  std::int32_t rank = 0;
  /// Since the newest snapshot on disk was written, or since the job began, as far as this node knows. 0: it
  /// has just begun and knows nothing.
  double since_disk_s = 0;
  std::vector<held_part> parts;
  /// The newest step that was committed, as far as this node was told: a job that can only go back behind it
  /// has lost work. 0: none, or it has just begun and knows nothing.
  std::uint64_t committed_step = 0;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(rank, since_disk_s, parts, committed_step);
  }
  bool operator==(const node_inventory&) const = default;
};

}  // namespace troupe
