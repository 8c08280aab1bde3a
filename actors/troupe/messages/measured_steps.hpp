#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "troupe/job/call.hpp"

namespace troupe::actors::messages {

/// What all devices did in one run of the plan.
struct measured_step {
  std::uint64_t step = 0;  ///< steps done with it; runs of the plan
  std::vector<job::measured_action> actions;
};

/// Keeps the newest step that every device has described. Devices choose by themselves which steps they
/// describe, so that some are never complete: these are dropped.
class measured_steps {
 public:
  static constexpr std::size_t most_open = 4;

  /// `step`: steps done with it. Steps older than the newest complete one do not count.
  void add(std::uint64_t step, std::uint32_t device, const std::vector<job::measured_action>& actions,
           std::size_t num_devices) {
    if (actions.empty() || (newest_ && step <= newest_->step)) return;
    auto& open = open_[step];
    open[device] = actions;
    if (open.size() < num_devices) {
      if (open_.size() > most_open) open_.erase(open_.begin());
      return;
    }
    auto complete = std::make_shared<measured_step>();
    complete->step = step;
    for (const auto& [number, all] : open)
      complete->actions.insert(complete->actions.end(), all.begin(), all.end());
    newest_ = std::move(complete);
    open_.erase(open_.begin(), open_.upper_bound(step));
  }
  /// Null: there was none in this generation.
  const std::shared_ptr<const measured_step>& newest() const { return newest_; }

 private:
  std::map<std::uint64_t, std::map<std::uint32_t, std::vector<job::measured_action>>> open_;
  std::shared_ptr<const measured_step> newest_;
};

}  // namespace troupe::actors::messages
