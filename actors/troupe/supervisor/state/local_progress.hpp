#pragma once
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "troupe/loader/loader_actor.hpp"
#include "troupe/messages/device_status.hpp"
#include "troupe/messages/scheduler.hpp"

namespace troupe::actors::supervisor {

/// Measures for how long the devices and the loader of one process have been at the same position. Their
/// threads only publish positions; time is counted here, between samples.
class local_progress {
 public:
  /// Replaces the status watched for this device, if any.
  void watch(int device, std::shared_ptr<const messages::device_status> status);
  void forget(int device) { devices_.erase(device); }
  void watch_loader(std::shared_ptr<const loader::loader_status> status);

  /// Takes a sample, `elapsed` after the last one. Time in which the process was suspended must not count.
  void sample(std::chrono::duration<double> elapsed);
  /// The longest time of any device or the loader, in seconds.
  double longest_s() const;
  /// Adds all devices and the loader to `report`.
  void describe(messages::process_progress& report) const;
  /// Where the devices are now, as their threads have published it, in order.
  std::vector<messages::device_progress> positions() const;
  /// See loader_status::changes; 0: there is no loader.
  std::uint64_t loader_changes() const { return loader_ ? loader_->changes() : 0; }
  /// The device or loader that has been in a program's or dataset's code for `limit_s` seconds, so that it
  /// cannot be stopped; empty if there is none.
  std::string stuck(double limit_s) const;

 private:
  struct watched {
    std::shared_ptr<const messages::device_status> status;
    std::optional<messages::device_status::sample> last;
    double for_s = 0;
  };
  std::map<int, watched> devices_;
  std::shared_ptr<const loader::loader_status> loader_;
  std::uint64_t loader_changes_ = 0;
  double loader_for_s_ = 0;
};

}  // namespace troupe::actors::supervisor
