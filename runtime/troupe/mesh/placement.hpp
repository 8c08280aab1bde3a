#pragma once
#include <map>
#include <string>
#include <vector>

#include "troupe/layout/part_id.hpp"
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

  const std::vector<logical_device>& devices() const { return devices_; }
  int num_devices() const { return static_cast<int>(devices_.size()); }
  const std::map<layout::cell, device_id>& device_of_cell() const { return device_of_cell_; }
  /// Throws std::invalid_argument for a cell that the job does not have.
  device_id device_of(const layout::cell& wanted) const;
  /// In ascending order.
  std::vector<layout::cell> cells_of(device_id device) const;
  bool operator==(const placement&) const = default;

 private:
  std::vector<logical_device> devices_;
  std::map<layout::cell, device_id> device_of_cell_;
};

/// The placement of the stages of a plan's replicas on the job's devices (plan::job_device): one slice, all
/// devices CPUs without a limit of their own.
placement place_cells(const plan& training);

/// The parts of a job without shards, one for each cell, in ascending order. `of_stage` [number of stages]:
/// what the parts of a stage are.
std::vector<layout::job_part> parts_of(const placement& placed,
                                       const std::vector<layout::replica_content>& of_stage);
/// The same for all stages.
std::vector<layout::job_part> parts_of(const placement& placed, layout::replica_content content);

/// Devices and cells, a line each: placements are equal if and only if these are.
std::string placement_text(const placement& shown);

}  // namespace troupe::mesh
