#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace troupe::layout {

/// One point of a job's mesh of pipeline stages, replicas (data parallel) and slices (tensor parallel): what
/// is computed on one logical device and whose state is copied and restored as one. Constant for a job.
struct cell {
  int stage = 0;
  int replica = 0;
  int slice = 0;
  auto operator<=>(const cell&) const = default;
};

/// "stage 2 replica 0 slice 0"
std::string to_string(const cell& shown);

/// Names what a cell, or one shard of it, keeps: the unit in which state is copied, written and restored. A
/// cell that is not sharded has one shard, 0. Constant for a job.
struct part_id {
  layout::cell cell;
  int shard = 0;
  auto operator<=>(const part_id&) const = default;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(cell.stage, cell.replica, cell.slice, shard);
  }
};

/// "stage 2", and whatever of the rest is not 0: "stage 2 replica 1 shard 3".
std::string to_string(const part_id& shown);

/// Whether the parts that the replicas have of one stage, slice and shard are the same bits.
/// - own: a part holds something of its replica (running means, residuals of compression)
/// - equal: none does, so that each stands in for the others
enum class replica_content : std::uint8_t { own, equal };

/// A part that a job has.
struct job_part {
  part_id id;
  replica_content content = replica_content::own;
  bool operator==(const job_part&) const = default;
};

/// The id of replica 0's part: that of all parts that may stand for each other.
part_id without_replica(part_id id);

/// Whether the part `held` has the bits of `wanted`.
bool stands_for(const part_id& held, const job_part& wanted);

/// Whether a snapshot on disk has the part: of parts that stand for each other it has that of replica 0.
bool is_written(const job_part& part);

}  // namespace troupe::layout
