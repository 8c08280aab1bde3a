#pragma once
#include <cstdint>
#include <vector>

#include "troupe/placement/cost_profile.hpp"

namespace troupe {

/// What layers are to be placed on.
struct device_capacity {
  double speed = 1;                ///< relative to the device that was measured: 2 takes half the time
  std::uint64_t memory_bytes = 0;  ///< 0: no limit
  bool operator==(const device_capacity&) const = default;
};

struct balance_options {
  std::vector<device_capacity> devices = {};
  /// [devices] Of how many microbatches the stage at each position keeps activations at once: of GPipe their
  /// number, of 1F1B with p stages min(number, p - position). Empty: 1 each.
  std::vector<int> kept_microbatches = {};
  double bytes_per_s = 0;  ///< between devices; 0: transfers take no time
  double latency_s = 0;    ///< of one transfer
};

/// Successive layers [first, last) on a device.
struct layer_chunk {
  int first = 0;
  int last = 0;
  int device = 0;
  double time_s = 0;  ///< of one microbatch there and back, with what comes in from other chunks
  std::uint64_t memory_bytes = 0;
  bool operator==(const layer_chunk&) const = default;
};

/// Cuts a model into one chunk of successive layers for each device, in order, so that the time of the
/// slowest is the least possible and each fits into its device's memory. Chunks begin with a layer that has
/// parameters (the first one also has the layers before it), and which device has which, is chosen too. Of
/// placements with the same time always the same one is chosen.
///
/// Exact: dynamic programming over the cuts and the devices that are used up, where devices that are alike
/// count as one kind. Throws bad_input for numbers that are not possible, for more devices than layers with
/// parameters, for so many kinds of devices that the search would take hours, and if nothing fits, saying by
/// how much and what would.
std::vector<layer_chunk> balance(const cost_profile& profile, const balance_options& options);

}  // namespace troupe
