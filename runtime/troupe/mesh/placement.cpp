#include "troupe/mesh/placement.hpp"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
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

placement placement::with_shards(const std::vector<int>& stages) const {
  auto sharded = *this;
  for (int stage : stages) {
    bool is_known = false;
    for (const auto& [placed, device] : device_of_cell_) {
      if (placed.stage != stage) continue;
      is_known = true;
      layout::part_id shard{{.stage = stage, .slice = placed.slice}, placed.replica};
      sharded.device_of_shard_[shard] = device;
    }
    if (!is_known) throw_invalid("placement::with_shards", "a stage of the job", std::to_string(stage));
  }
  return sharded;
}

device_id placement::device_of(const layout::part_id& wanted) const {
  auto shard = device_of_shard_.find(wanted);
  if (shard != device_of_shard_.end()) return shard->second;
  bool is_sharded = device_of_shard_.contains({{.stage = wanted.cell.stage, .slice = wanted.cell.slice}, 0});
  if (is_sharded || wanted.shard != 0)
    throw_invalid("placement::device_of", "one of the job's " + std::to_string(parts().size()) + " parts",
                  to_string(wanted));
  return device_of(wanted.cell);
}

int placement::num_shards() const {
  int most = 1;
  for (const auto& [shard, device] : device_of_shard_) most = std::max(most, shard.shard + 1);
  return most;
}

layout::part_id placement::part_of(const layout::cell& wanted) const {
  layout::part_id shard{{.stage = wanted.stage, .slice = wanted.slice}, wanted.replica};
  return device_of_shard_.contains(shard) ? shard : layout::part_id{wanted, 0};
}

layout::cell placement::cell_of(const layout::part_id& kept) const {
  auto cell = kept.cell;
  if (device_of_shard_.contains(kept)) cell.replica = kept.shard;
  return cell;
}

std::vector<layout::part_id> placement::parts() const {
  std::set<int> sharded;
  std::vector<layout::part_id> parts;
  for (const auto& [shard, device] : device_of_shard_) {
    sharded.insert(shard.cell.stage);
    parts.push_back(shard);
  }
  for (const auto& [placed, device] : device_of_cell_)
    if (!sharded.contains(placed.stage)) parts.push_back({placed, 0});
  std::ranges::sort(parts);
  return parts;
}

std::vector<layout::cell> placement::cells_of(device_id device) const {
  std::vector<layout::cell> cells;
  for (const auto& [placed, on] : device_of_cell_)
    if (on == device) cells.push_back(placed);
  return cells;
}

placement place_cells(const plan& training, const device_places& places, std::uint64_t memory_limit_bytes) {
  std::vector<logical_device> devices;
  for (int number = 0; number < training.num_job_devices(); ++number)
    devices.push_back({{number}, places.kind_of({number}), memory_limit_bytes});
  std::map<layout::cell, device_id> device_of_cell;
  const auto& mesh = training.mesh;
  for (int lane = 0; lane < mesh.num_lanes(); ++lane)
    for (int stage = 0; stage < training.num_stages; ++stage)
      device_of_cell[{.stage = stage, .replica = mesh.replica_of(lane), .slice = mesh.slice_of(lane)}] = {
          training.job_device(lane, training.device_of_stage.at(static_cast<std::size_t>(stage)))};
  return placement(std::move(devices), std::move(device_of_cell));
}

std::vector<layout::job_part> parts_of(const placement& placed,
                                       const std::vector<layout::replica_content>& of_stage) {
  std::vector<layout::job_part> parts;
  for (const auto& id : placed.parts())
    parts.push_back({id, of_stage.at(static_cast<std::size_t>(id.cell.stage))});
  return parts;
}

std::vector<layout::job_part> parts_of(const placement& placed, layout::replica_content content) {
  std::vector<layout::job_part> parts;
  for (const auto& id : placed.parts()) parts.push_back({id, content});
  return parts;
}

std::string placement_text(const placement& shown) {
  std::string text;
  for (const auto& device : shown.devices())
    text += to_string(device.id) + (device.place == device::kind::cuda ? " cuda " : " cpu ") +
            std::to_string(device.memory_limit_bytes) + "\n";
  for (const auto& [placed, on] : shown.device_of_cell())
    text += to_string(placed) + ": " + to_string(on) + "\n";
  for (const auto& [shard, on] : shown.device_of_shard())
    text +=
        "shard " + std::to_string(shard.shard) + " of " + to_string(shard.cell) + ": " + to_string(on) + "\n";
  return text;
}

}  // namespace troupe::mesh
