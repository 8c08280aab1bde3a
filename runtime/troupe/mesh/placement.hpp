#pragma once
#include <map>
#include <string>
#include <vector>

#include "troupe/layout/part_id.hpp"
#include "troupe/mesh/device_places.hpp"
#include "troupe/mesh/logical_device.hpp"
#include "troupe/schedule/plan.hpp"

namespace troupe::mesh {

/// Which logical device computes each cell. A value, equal in all processes and constant for a job.
class placement {
 public:
  placement() = default;
  /// Throws std::invalid_argument unless the devices are numbered 0, 1, ... in order and every cell's device
  /// is one of them.
  placement(std::vector<logical_device> devices, std::map<layout::cell, device_id> device_of_cell);

  /// The same where the state of some stages is sharded over their replicas: shard k of a stage of slice s is
  /// on the device of the k-th replica's cell. Its part is named by the first replica (part_id). Throws
  /// std::invalid_argument for a stage that the job does not have.
  placement with_shards(const std::vector<int>& stages) const;

  const std::vector<logical_device>& devices() const { return devices_; }
  int num_devices() const { return static_cast<int>(devices_.size()); }
  const std::map<layout::cell, device_id>& device_of_cell() const { return device_of_cell_; }
  /// How many replicas hold the weights of a stage together; 1: each holds all.
  int num_shards() const;
  /// Of the sharded stages.
  const std::map<layout::part_id, device_id>& device_of_shard() const { return device_of_shard_; }
  /// Throws std::invalid_argument for a cell that the job does not have.
  device_id device_of(const layout::cell& wanted) const;
  /// The device that holds a part and computes its updates: that of its cell, or of the cell that owns a
  /// shard. Throws std::invalid_argument for a part that the job does not have.
  device_id device_of(const layout::part_id& wanted) const;
  /// What a cell of the job keeps: a part of its own, or a shard.
  layout::part_id part_of(const layout::cell& wanted) const;
  /// The cell that keeps a part of the job.
  layout::cell cell_of(const layout::part_id& kept) const;
  /// The parts of the job, ascending: one for each cell, or in place of those of a sharded stage its shards.
  std::vector<layout::part_id> parts() const;
  /// In ascending order.
  std::vector<layout::cell> cells_of(device_id device) const;
  bool operator==(const placement&) const = default;

 private:
  std::vector<logical_device> devices_;
  std::map<layout::cell, device_id> device_of_cell_;
  std::map<layout::part_id, device_id> device_of_shard_;
};

/// The placement of the stages of a plan's lanes on the job's devices (plan::job_device), which have no limit
/// of their own.
placement place_cells(const plan& training, const device_places& places = {},
                      std::uint64_t memory_limit_bytes = 0);

/// The parts of a job, in ascending order. `of_stage` [number of stages]: what the parts of a stage are.
std::vector<layout::job_part> parts_of(const placement& placed,
                                       const std::vector<layout::replica_content>& of_stage);
/// The same for all stages.
std::vector<layout::job_part> parts_of(const placement& placed, layout::replica_content content);

/// Devices and cells, a line each: placements are equal if and only if these are.
std::string placement_text(const placement& shown);

}  // namespace troupe::mesh
