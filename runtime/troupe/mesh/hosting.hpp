#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "troupe/mesh/placement.hpp"
#include "troupe/mesh/view.hpp"

namespace troupe::mesh {

/// Which member hosts each logical device. A member hosts any number of them, each on a thread of its own,
/// or none. A value, equal in all processes for one generation.
class hosting {
 public:
  hosting() = default;
  /// [number of devices], by device.
  explicit hosting(const std::vector<world_rank>& member_of_device);

  bool empty() const { return ranks_.empty(); }
  int num_devices() const { return static_cast<int>(ranks_.size()); }
  /// Throws std::invalid_argument for a device that the job does not have.
  world_rank member_of(device_id device) const;
  /// In ascending order.
  std::vector<device_id> devices_of(world_rank member) const;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(ranks_);
  }
  bool operator==(const hosting&) const = default;

 private:
  std::vector<std::int32_t> ranks_;  ///< [devices] rank of the process that has it
};

/// "device 0: rank 0", a line for each device.
std::string hosting_text(const hosting& shown);

/// The member that hosts a cell, or a part, by both tables. Throws std::invalid_argument for one that the job
/// does not have.
world_rank host_of(const placement& placed, const hosting& hosts, const layout::cell& wanted);
world_rank host_of(const placement& placed, const hosting& hosts, const layout::part_id& wanted);

/// [replica] The members that host the replicas of a cell, which may be any of these.
std::vector<world_rank> hosts_of_replicas(const placement& placed, const hosting& hosts,
                                          layout::cell of_stage, int num_replicas);

/// Whether several members host them.
bool is_on_several_members(const placement& placed, const hosting& hosts, const layout::cell& of_stage,
                           int num_replicas);

/// Where devices run when a job begins: contiguous blocks over the active members in ascending order. Where
/// they do not come out even, the first members get one device more; with fewer devices than members the last
/// ones get none. Throws std::invalid_argument for a view without an active member.
hosting spread(const placement& placed, const view& present);

/// How a member holds the state of all cells of a device in its memory. own: it has computed it.
enum class held_as : std::uint8_t { own = 0, copy = 1 };

struct holding {
  world_rank member;
  device_id device;
  held_as as = held_as::copy;
  bool operator==(const holding&) const = default;
};

/// Who hosts which device in a view, from where the devices were before and what the members hold. The same
/// rules for a process that replaces a lost one, a smaller and a larger world:
///
/// - No member hosts more than its share: the number of devices over that of active members, rounded up.
/// - A device stays with its member of `before` while that is active (also if its process is a new one) and
///   within its share, in ascending order of devices.
/// - Every other device goes, in ascending order, to an active member that hosts fewer than its share. A
///   member that has its state as own comes before one with a copy, and that before others. Among these the
///   one with the fewest devices comes first, then the lowest.
///
/// So equal active members keep what an earlier call, or spread, gave them, and no more devices move than
/// must. Throws std::invalid_argument for a view without an active member, or if `before` has other devices
/// than `placed`.
hosting assign(const placement& placed, const view& present, const std::vector<holding>& held,
               const hosting& before);

}  // namespace troupe::mesh
