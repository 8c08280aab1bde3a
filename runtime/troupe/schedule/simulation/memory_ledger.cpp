#include "troupe/schedule/simulation/memory_ledger.hpp"

#include <algorithm>
#include <map>

#include "troupe/error/errors.hpp"

namespace troupe::schedule {
namespace {

/// Bytes by when they arrive.
using arrivals = std::multimap<double, std::int64_t>;

class ledger_walk {
 public:
  ledger_walk(const bytes_by_use& at_first, arrivals arriving)
      : held_(at_first), arriving_(std::move(arriving)) {
    note({});
  }

  void run(const timed_action& done, const std::vector<memory_effect>& effects) {
    receive_until(done.end);
    std::int64_t peak = total();
    for (const auto& each : effects) peak = std::max(peak, note(each));
    ledger_.entries.push_back({done.op, held_, peak});
  }

  device_ledger take() { return std::move(ledger_); }

 private:
  void receive_until(double when) {
    auto end = arriving_.upper_bound(when);
    for (auto each = arriving_.begin(); each != end; ++each) of(memory_use::messages, held_) += each->second;
    arriving_.erase(arriving_.begin(), end);
    keep_most();
  }

  std::int64_t note(const memory_effect& effect) {
    // What it takes over is messages before, and of another use from its begin on.
    auto taken = std::min(of(memory_use::messages, effect.change), std::int64_t{0});
    of(memory_use::messages, held_) += taken;
    auto peak = total() - taken + effect.peak;
    for (std::size_t use = 0; use < held_.size(); ++use) held_[use] += effect.change[use];
    of(memory_use::messages, held_) -= taken;
    auto& working = of(memory_use::working, ledger_.most);
    working = std::max(working, effect.working);
    keep_most();
    ledger_.peak = std::max(ledger_.peak, peak);
    return peak;
  }

  /// Messages that were taken over before they were counted are no memory.
  std::int64_t total() const {
    std::int64_t sum = 0;
    for (auto bytes : held_) sum += bytes;
    return sum - std::min(of(memory_use::messages, held_), std::int64_t{0});
  }

  void keep_most() {
    for (std::size_t use = 0; use < held_.size(); ++use)
      ledger_.most[use] = std::max(ledger_.most[use], held_[use]);
  }

  bytes_by_use held_;
  arrivals arriving_;
  device_ledger ledger_;
};

}  // namespace

std::vector<device_ledger> memory_ledger(const timeline& ran, const memory_costs& costs) {
  if (costs.at_first.size() != ran.devices.size())
    throw_invalid("memory_ledger", "what each of " + std::to_string(ran.devices.size()) + " devices holds",
                  std::to_string(costs.at_first.size()) + " of them");
  std::vector<arrivals> arriving(ran.devices.size());
  for (const auto& [when, device, bytes] : costs.arriving)
    arriving.at(static_cast<std::size_t>(device)).emplace(when, bytes);
  std::vector<device_ledger> ledgers;
  for (std::size_t device = 0; device < ran.devices.size(); ++device) {
    ledger_walk walk(costs.at_first[device], std::move(arriving[device]));
    for (const auto& done : ran.devices[device]) walk.run(done, costs.effects_of(done.op));
    ledgers.push_back(walk.take());
  }
  return ledgers;
}

}  // namespace troupe::schedule
