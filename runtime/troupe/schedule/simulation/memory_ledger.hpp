#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "troupe/schedule/simulation/simulate.hpp"
#include "troupe/tensor/memory_account.hpp"

namespace troupe::schedule {

/// Bytes of a device, by what they are for.
using bytes_by_use = std::array<std::int64_t, num_memory_uses>;
inline std::int64_t& of(memory_use use, bytes_by_use& bytes) { return bytes[static_cast<std::size_t>(use)]; }
inline std::int64_t of(memory_use use, const bytes_by_use& bytes) {
  return bytes[static_cast<std::size_t>(use)];
}

/// What an action, or a part of it, does to the memory of its device. What it takes over changes its use.
struct memory_effect {
  bytes_by_use change = {};  ///< how much more is held after it than before; less: negative
  /// How much more than before is held at most while it runs, besides what it took over.
  std::int64_t peak = 0;
  std::int64_t working = 0;  ///< how much of that is held neither before nor after it
};

/// Tensors that come to a device, at a time of the timeline: messages until an action takes them over.
struct memory_arrival {
  double when = 0;
  int device = 0;
  std::int64_t bytes = 0;
};

/// What actions do to memory.
struct memory_costs {
  /// Of an action, one after the other.
  std::function<std::vector<memory_effect>(const action&)> effects_of;
  std::vector<bytes_by_use> at_first;    ///< [num_devices] held when the step begins
  std::vector<memory_arrival> arriving;  ///< in any order
};

/// What one device of a plan holds in a step.
struct device_ledger {
  struct entry {
    action op;
    bytes_by_use held = {};  ///< when it has ended
    std::int64_t peak = 0;   ///< of the sum while it ran
    bool operator==(const entry&) const = default;
  };
  std::vector<entry> entries;  ///< in order
  bytes_by_use most = {};      ///< of each use, ever
  std::int64_t peak = 0;       ///< of the sum, ever
};

/// [num_devices] Follows each device through its actions, which arrivals until the end of an action precede.
/// An action may take over messages before they are counted as arrived (a backward hands some on before it
/// ends): such a debt is no memory. Throws std::invalid_argument unless `at_first` has one entry for each
/// device.
std::vector<device_ledger> memory_ledger(const timeline& ran, const memory_costs& costs);

}  // namespace troupe::schedule
