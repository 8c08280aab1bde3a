#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "troupe/error/errors.hpp"
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
  int num_microbatches = 1;  ///< of a step: the optimizer's part of it is done once
  /// [devices] Of how many microbatches the stage at each position keeps activations at once: of GPipe their
  /// number, of 1F1B with p stages min(number, p - position). Empty: 1 each.
  std::vector<int> kept_microbatches = {};
  double bytes_per_s = 0;  ///< between devices; 0: transfers take no time
  double latency_s = 0;    ///< of one transfer, with any bandwidth
};

/// Successive layers [first, last) on a device.
struct layer_chunk {
  int first = 0;
  int last = 0;
  int device = 0;
  /// Of a step: forward and backward of its microbatches, with what comes in from other chunks, and the
  /// optimizer.
  double time_s = 0;
  /// Parameters, gradients, optimizer, buffers, and of the kept microbatches the activations and what comes
  /// in. Values that go out count too, though most need not be kept.
  std::uint64_t memory_bytes = 0;
  bool operator==(const layer_chunk&) const = default;
};

/// No placement fits into the memory of the devices.
class memory_shortage : public bad_input {
 public:
  memory_shortage(const std::string& problem, std::uint64_t missing_bytes)
      : bad_input(problem), missing_bytes_(missing_bytes) {}
  /// So many more on each device with a limit would do.
  std::uint64_t missing_bytes() const { return missing_bytes_; }

 private:
  std::uint64_t missing_bytes_;
};

/// Cuts a model into one chunk of successive layers for each device, in order, so that the time of the
/// slowest is the least possible and each fits into its device's memory. Chunks begin with a layer that has
/// parameters (the first one also has the layers before it), and which device has which, is chosen too. Every
/// device gets at least one layer, even where fewer devices would be as fast. Of placements with the same
/// time it takes one whose least busy device is as busy as it can be, and always the same.
///
/// Exact (bottleneck_search.cpp), where devices that are alike count as one kind: 16 devices of different
/// speeds and 200 layers take seconds. Throws bad_input for
/// - numbers that are not possible
/// - more devices than layers with parameters
/// - so many kinds of devices and layers that the search would take minutes, or more than its half GiB
///
/// Throws memory_shortage if nothing fits, saying by how much and what would.
std::vector<layer_chunk> balance(const cost_profile& profile, const balance_options& options);

}  // namespace troupe
