#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "troupe/schedule/plan.hpp"

namespace troupe::schedule {

/// What a device is doing. The numbers go over the wire.
enum class device_activity : std::uint8_t {
  idle = 0,                 ///< has no granted step
  computing = 1,            ///< the action at its position
  applying = 2,             ///< the A at its position; after the last action what is queued
  waiting_for_tensor = 3,   ///< for what the action at its position needs from other devices
  waiting_for_samples = 4,  ///< waits for its process's loader
  copying_state = 5,        ///< waits until copies of its state are made, which the next A would change
};

/// Whether it does something itself, rather than wait for others.
constexpr bool is_busy(device_activity activity) {
  return activity == device_activity::computing || activity == device_activity::applying ||
         activity == device_activity::copying_state;
}

/// The position of a device in the plan, and for how many seconds it has been there.
struct device_position {
  device_activity activity = device_activity::idle;
  std::uint64_t step = 0;
  std::size_t action = 0;  ///< index in the device's list
  double for_s = 0;
};

/// What a loader is doing.
struct loader_position {
  bool is_working = false;  ///< it is within the dataset's code
  double for_s = 0;
};

/// A snapshot of all devices of a job that runs the plan `running`.
struct job_positions {
  plan running;
  std::vector<std::optional<device_position>> devices;  ///< [num_job_devices]; none: not known
  std::vector<loader_position> loaders;                 ///< [num_job_devices], that of the device's process
};

enum class stall_cause : std::uint8_t {
  none,            ///< no device waits, or the one waited for is unknown
  device,          ///< it does not return from an action
  loader,          ///< it does not return from the dataset
  lost_tensor,     ///< its sender is past it, and its receiver waits for it
  lost_samples,    ///< the loader does nothing, and a device waits for it
  missing_credit,  ///< a device waits for one that was granted no step
  deadlock,        ///< the plan has a cycle
};

/// One device of a chain of waits.
struct wait_link {
  int device = 0;
  device_position position;
  std::optional<action> wanted;  ///< what it waits for, of `from`
  int from = -1;
};

/// A chain of waits and its cause.
struct stall {
  stall_cause cause = stall_cause::none;
  int device = -1;   ///< the device at fault, or the one whose loader or input is
  double for_s = 0;  ///< how long `cause` has held
  /// From a waiting device to the one at fault. At least one link unless the cause is none.
  std::vector<wait_link> chain;
  /// Describes the fault without times: equal texts mean the same fault. "device 1 does not return from 1F4
  /// of step 40".
  std::string problem;
  /// The chain as a text, with times: "device 0 waits for 1B3 of device 1 since 12.3 s; device 1 has been
  /// computing 1F4 of step 40 for 600.2 s".
  std::string text;
};

/// The chain of waits from each device whose cause is known, in the order of devices: from a device that
/// computes, itself. Throws as find_stall does.
std::vector<stall> wait_chains(const job_positions& seen);

/// Follows the chain of waits from every waiting device to its cause, and returns the chain whose cause has
/// held longest. A pure function: the caller decides what is too long. Throws std::invalid_argument unless
/// there is one entry for each device of the plan, and an action where one waits or computes.
stall find_stall(const job_positions& seen);

}  // namespace troupe::schedule
