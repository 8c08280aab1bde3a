#include "troupe/recovery/snapshot_cadence.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::recovery {
namespace {

bool is_multiple(std::uint64_t step, std::uint64_t every) {
  return every != 0 && step != 0 && step % every == 0;
}

}  // namespace

due_snapshots snapshot_due(std::uint64_t step, const snapshot_cadence& cadence,
                           std::optional<std::uint64_t> announced_disk_step) {
  bool by_time = cadence.disk_every_steps == 0;
  bool disk = by_time ? announced_disk_step == step : is_multiple(step, cadence.disk_every_steps);
  return {disk || is_multiple(step, cadence.memory_every_steps), disk};
}

std::optional<std::uint64_t> next_disk_step(const disk_clock& clock, const snapshot_cadence& cadence) {
  if (cadence.disk_every_steps != 0 || cadence.disk_interval.count() <= 0) return {};
  if (clock.next_credit <= clock.granted_until) return {};
  auto first = clock.granted_until + 1;
  auto remaining = cadence.disk_interval - clock.since_last_disk;
  if (remaining.count() <= 0) return first;
  if (clock.step_time.count() <= 0) return {};
  // Compared before it is converted: a number of steps that no integer holds would be undefined.
  auto steps_to_go = std::round(remaining / clock.step_time);
  if (clock.next_credit < clock.steps_done ||
      steps_to_go > static_cast<double>(clock.next_credit - clock.steps_done))
    return {};
  return std::max(first, clock.steps_done + static_cast<std::uint64_t>(steps_to_go));
}

}  // namespace troupe::recovery
