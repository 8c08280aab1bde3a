#pragma once
#include <compare>
#include <cstdint>
#include <string>

#include "troupe/tensor/device.hpp"

namespace troupe::mesh {

/// The number of a logical device in its job, from 0. No stage and no rank: placement and hosting say which
/// belong together.
struct device_id {
  int number = 0;
  auto operator<=>(const device_id&) const = default;
};

/// "device 3"
std::string to_string(device_id shown);

/// One of a job's devices: a thread that computes, wherever it runs. Constant for a job; which process hosts
/// it may change.
struct logical_device {
  device_id id;
  device::kind place = device::kind::cpu;
  std::uint64_t memory_limit_bytes = 0;  ///< of what it holds at its place; 0: that of the machine
  bool operator==(const logical_device&) const = default;
};

}  // namespace troupe::mesh
