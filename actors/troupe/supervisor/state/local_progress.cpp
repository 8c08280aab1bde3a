#include "troupe/supervisor/state/local_progress.hpp"

#include <algorithm>
#include <utility>

namespace troupe::actors::supervisor {

void local_progress::watch(int device, std::shared_ptr<const messages::device_status> status) {
  devices_[device] = {std::move(status), {}, 0};
}

void local_progress::watch_loader(std::shared_ptr<const loader::loader_status> status) {
  loader_ = std::move(status);
  loader_changes_ = 0;
  loader_for_s_ = 0;
}

void local_progress::sample(std::chrono::duration<double> elapsed) {
  for (auto& [number, one] : devices_) {
    auto seen = one.status->read();
    bool stands = seen && one.last && seen->changes == one.last->changes;
    one.for_s = stands ? one.for_s + elapsed.count() : 0;
    one.last = seen;
  }
  if (!loader_) return;
  bool stands = std::exchange(loader_changes_, loader_->changes()) == loader_changes_;
  loader_for_s_ = stands ? loader_for_s_ + elapsed.count() : 0;
}

double local_progress::longest_s() const {
  double longest = 0;
  for (const auto& [number, one] : devices_) longest = std::max(longest, one.for_s);
  return longest;
}

void local_progress::describe(messages::process_progress& report) const {
  for (const auto& [number, one] : devices_)
    if (one.last)
      report.devices.push_back({static_cast<std::uint32_t>(number), one.last->position, one.for_s});
  report.loader_is_working = loader_changes_ % 2 != 0;
  report.loader_for_s = loader_for_s_;
}

std::vector<messages::device_progress> local_progress::positions() const {
  std::vector<messages::device_progress> all;
  for (const auto& [number, one] : devices_)
    if (auto seen = one.status->read()) {
      bool stands = one.last && seen->changes == one.last->changes;
      all.push_back({static_cast<std::uint32_t>(number), seen->position, stands ? one.for_s : 0});
    }
  return all;
}

std::string local_progress::stuck(double limit_s) const {
  for (const auto& [number, one] : devices_) {
    if (!one.last || one.for_s < limit_s) continue;
    if (schedule::is_busy(one.last->position.activity)) return "device " + std::to_string(number);
  }
  return loader_changes_ % 2 != 0 && loader_for_s_ >= limit_s ? "the loader" : "";
}

}  // namespace troupe::actors::supervisor
