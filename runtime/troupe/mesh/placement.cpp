#include "troupe/mesh/placement.hpp"

#include <cstddef>
#include <utility>

#include "troupe/error/errors.hpp"

namespace troupe::mesh {

std::string to_string(device_id shown) { return "device " + std::to_string(shown.number); }

placement::placement(std::vector<logical_device> devices, std::map<layout::cell, device_id> device_of_cell)
    : devices_(std::move(devices)), device_of_cell_(std::move(device_of_cell)) {
  for (std::size_t at = 0; at < devices_.size(); ++at)
    if (devices_[at].id.number != static_cast<int>(at))
      throw_invalid("placement", "device " + std::to_string(at) + " at position " + std::to_string(at),
                    to_string(devices_[at].id));
  for (const auto& [placed, device] : device_of_cell_)
    if (device.number < 0 || device.number >= num_devices())
      throw_invalid("placement",
                    to_string(placed) + " on one of " + std::to_string(num_devices()) + " devices",
                    to_string(device));
}

device_id placement::device_of(const layout::cell& wanted) const {
  auto found = device_of_cell_.find(wanted);
  if (found == device_of_cell_.end())
    throw_invalid("placement::device_of",
                  "one of the job's " + std::to_string(device_of_cell_.size()) + " cells", to_string(wanted));
  return found->second;
}

std::vector<layout::cell> placement::cells_of(device_id device) const {
  std::vector<layout::cell> cells;
  for (const auto& [placed, on] : device_of_cell_)
    if (on == device) cells.push_back(placed);
  return cells;
}

placement place_cells(const plan& training) {
  std::vector<logical_device> devices;
  for (int number = 0; number < training.num_job_devices(); ++number) devices.push_back({.id = {number}});
  std::map<layout::cell, device_id> device_of_cell;
  for (int replica = 0; replica < training.num_replicas; ++replica)
    for (int stage = 0; stage < training.num_stages; ++stage)
      device_of_cell[{.stage = stage, .replica = replica}] = {
          training.job_device(replica, training.device_of_stage.at(static_cast<std::size_t>(stage)))};
  return placement(std::move(devices), std::move(device_of_cell));
}

std::vector<layout::job_part> parts_of(const placement& placed,
                                       const std::vector<layout::replica_content>& of_stage) {
  std::vector<layout::job_part> parts;
  for (const auto& [one, device] : placed.device_of_cell())
    parts.push_back({{one, 0}, of_stage.at(static_cast<std::size_t>(one.stage))});
  return parts;
}

std::vector<layout::job_part> parts_of(const placement& placed, layout::replica_content content) {
  std::vector<layout::job_part> parts;
  for (const auto& [one, device] : placed.device_of_cell()) parts.push_back({{one, 0}, content});
  return parts;
}

std::string placement_text(const placement& shown) {
  std::string text;
  for (const auto& device : shown.devices())
    text += to_string(device.id) + (device.place == device::kind::cuda ? " cuda " : " cpu ") +
            std::to_string(device.memory_limit_bytes) + "\n";
  for (const auto& [placed, on] : shown.device_of_cell())
    text += to_string(placed) + ": " + to_string(on) + "\n";
  return text;
}

}  // namespace troupe::mesh
