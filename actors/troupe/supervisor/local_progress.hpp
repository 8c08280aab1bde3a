#pragma once
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "troupe/device/device_status.hpp"
#include "troupe/loader/loader_actor.hpp"
#include "troupe/scheduler/messages.hpp"

namespace troupe {

/// For how long the devices and the loader of one process have been seen at the same place. Their own threads
/// only say where they are; time is counted here, from one look to the next.
class local_progress {
 public:
  /// In place of what was watched under this number.
  void watch(int device, std::shared_ptr<const device_status> status);
  void watch_loader(std::shared_ptr<const loader_status> status);

  /// `elapsed` since the last look. A process that was suspended must not count that time.
  void look(std::chrono::duration<double> elapsed);
  /// The longest time of any of them.
  double longest_s() const;
  /// Into `told`, all of them.
  void describe(node_progress& told) const;
  /// Which of them has been within someone's code for `limit_s` and so cannot be stopped; empty if none.
  std::string stuck(double limit_s) const;

 private:
  struct watched {
    std::shared_ptr<const device_status> status;
    std::optional<device_status::sample> last;
    double for_s = 0;
  };
  std::map<int, watched> devices_;
  std::shared_ptr<const loader_status> loader_;
  std::uint64_t loader_changes_ = 0;
  double loader_for_s_ = 0;
};

}  // namespace troupe
