#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/mesh/logical_device.hpp"
#include "troupe/tensor/device.hpp"

namespace troupe::mesh {

/// Where the logical devices of a job compute: on the CPU, on a GPU with a number, or each on a GPU of its
/// own. A value, equal in all processes and constant for a job. The bits of a stage depend on it: so it names
/// places by the device's number in the job, whichever process hosts the device.
class device_places {
 public:
  /// All on the CPU.
  device_places() = default;
  /// Parses a list such as "cpu", "cuda", "cuda:0", "cuda:0..3", "cpu,cuda:0", which the devices take in
  /// turn, from device 0. "cuda" without a number is a GPU of the device's own, see of(). Throws bad_input,
  /// naming the accepted forms, for any other text.
  static device_places from_string(std::string_view text);

  device::kind kind_of(device_id which) const { return entry_of(which).kind; }
  bool has_gpus() const;
  bool has_cpus() const;
  /// Whether some devices have GPUs of their own, whose numbers depend on the process.
  bool counts_from_local_rank() const;
  /// The place of `which` in a process that is the `local_rank`-th of its host and has `num_devices` devices:
  /// for "cuda" the GPU local_rank * num_devices + which.number % num_devices.
  device of(device_id which, int local_rank, int num_devices) const;
  /// All GPUs of one process, ascending, each once.
  std::vector<device> gpus_of_process(int local_rank, int num_devices) const;
  bool operator==(const device_places&) const = default;

 private:
  struct entry {
    device::kind kind = device::kind::cpu;
    std::optional<int> gpu = {};  ///< none: of the device's own
    bool operator==(const entry&) const = default;
  };
  const entry& entry_of(device_id which) const;

  std::vector<entry> entries_ = {entry()};
};

/// Where the devices compute that one process of a job hosts.
struct process_places {
  device_places places = {};
  int local_rank = 0;
  int num_devices = 1;  ///< in each process (job_options::devices)

  device of(device_id which) const { return places.of(which, local_rank, num_devices); }
  std::vector<device> gpus() const { return places.gpus_of_process(local_rank, num_devices); }
};

}  // namespace troupe::mesh
