#include "troupe/mesh/hosting.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>

#include "troupe/error/errors.hpp"

namespace troupe::mesh {
namespace {

std::vector<world_rank> active_members(const char* function, const view& present) {
  auto active = present.with_role(member_role::active);
  if (active.empty())
    throw_invalid(
        function, "an active member",
        "a view of " + std::to_string(present.members.size()) + " members, none of which is active");
  return active;
}

/// 0: own, 1: a copy, 2: nothing.
int rank_of_holding(const std::vector<holding>& held, world_rank member, device_id device) {
  int best = 2;
  for (const auto& one : held)
    if (one.member == member && one.device == device) best = std::min(best, one.as == held_as::own ? 0 : 1);
  return best;
}

}  // namespace

hosting::hosting(const std::vector<world_rank>& member_of_device) {
  for (auto member : member_of_device) ranks_.push_back(member);
}

world_rank hosting::member_of(device_id device) const {
  if (device.number < 0 || device.number >= num_devices())
    throw_invalid("hosting::member_of", "one of the job's " + std::to_string(num_devices()) + " devices",
                  to_string(device));
  return {ranks_[static_cast<std::size_t>(device.number)]};
}

std::vector<device_id> hosting::devices_of(world_rank member) const {
  std::vector<device_id> devices;
  for (int number = 0; number < num_devices(); ++number)
    if (member_of({number}) == member) devices.push_back({number});
  return devices;
}

std::string hosting_text(const hosting& shown) {
  std::string text;
  for (int number = 0; number < shown.num_devices(); ++number)
    text += to_string(device_id{number}) + ": rank " + to_string(shown.member_of({number})) + "\n";
  return text;
}

world_rank host_of(const placement& placed, const hosting& hosts, const layout::cell& wanted) {
  return hosts.member_of(placed.device_of(wanted));
}

world_rank host_of(const placement& placed, const hosting& hosts, const layout::part_id& wanted) {
  return hosts.member_of(placed.device_of(wanted));
}

std::vector<world_rank> hosts_of_replicas(const placement& placed, const hosting& hosts,
                                          layout::cell of_stage, int num_replicas) {
  std::vector<world_rank> found;
  for (of_stage.replica = 0; of_stage.replica < num_replicas; ++of_stage.replica)
    found.push_back(host_of(placed, hosts, of_stage));
  return found;
}

bool is_on_several_members(const placement& placed, const hosting& hosts, const layout::cell& of_stage,
                           int num_replicas) {
  auto found = hosts_of_replicas(placed, hosts, of_stage, num_replicas);
  return std::ranges::any_of(found, [&](world_rank host) { return host != found.front(); });
}

hosting spread(const placement& placed, const view& present) {
  auto active = active_members("spread", present);
  auto num_devices = static_cast<std::size_t>(placed.num_devices());
  std::vector<world_rank> member_of_device;
  for (std::size_t at = 0; at < active.size(); ++at) {
    auto share = num_devices / active.size() + (at < num_devices % active.size() ? 1 : 0);
    member_of_device.insert(member_of_device.end(), share, active[at]);
  }
  return hosting(member_of_device);
}

hosting assign(const placement& placed, const view& present, const std::vector<holding>& held,
               const hosting& before) {
  auto active = active_members("assign", present);
  if (before.num_devices() != placed.num_devices())
    throw_invalid("assign", std::to_string(placed.num_devices()) + " devices before",
                  std::to_string(before.num_devices()));
  auto share = (placed.devices().size() + active.size() - 1) / active.size();
  std::map<world_rank, std::size_t> load;
  for (auto member : active) load[member] = 0;

  std::vector<world_rank> member_of_device;
  std::vector<device_id> to_move;
  for (const auto& device : placed.devices()) {
    auto member = before.member_of(device.id);
    member_of_device.push_back(member);
    if (auto found = load.find(member); found != load.end() && found->second < share)
      ++found->second;
    else
      to_move.push_back(device.id);
  }
  for (auto device : to_move) {
    auto preference = [&, device](const auto& entry) {
      return std::tuple(entry.second >= share, rank_of_holding(held, entry.first, device), entry.second);
    };
    auto chosen = std::ranges::min_element(load, {}, preference);  // the first, so the lowest, of equals
    ++chosen->second;
    member_of_device[static_cast<std::size_t>(device.number)] = chosen->first;
  }
  return hosting(member_of_device);
}

}  // namespace troupe::mesh
