#include "troupe/cluster/recovery_clock.hpp"

#include <algorithm>

namespace troupe::cluster {
namespace {

double seconds_between(recovery_clock::time_point first, recovery_clock::time_point second) {
  return std::max(0.0, std::chrono::duration<double>(second - first).count());
}

}  // namespace

void recovery_clock::begin(const member_loss& loss, time_point died, time_point detected) {
  if (running_) return;
  running_ = true;
  was_fenced_ = false;
  loss_ = loss;
  detected_ = detected;
  died_ = std::min(died, detected);
}

void recovery_clock::fenced(std::uint64_t generation, time_point now) {
  if (!running_) return;
  if (!was_fenced_) fenced_ = now;
  was_fenced_ = true;
  generation_ = generation;
  acknowledged_ = fenced_;
  restored_.reset();
  rebuilt_.reset();
}

void recovery_clock::acknowledged(time_point now) { acknowledged_ = now; }

void recovery_clock::viewed(time_point now) { viewed_ = now; }

std::optional<recovery_report> recovery_clock::reached(recovery_phase phase, time_point now) {
  if (!running_) return {};
  switch (phase) {
    case recovery_phase::restored:
      if (!restored_) restored_ = now;
      return {};
    case recovery_phase::rebuilt:
      if (!rebuilt_) rebuilt_ = now;
      return {};
    case recovery_phase::replayed:
      running_ = false;
      return report(now);
  }
  return {};
}

recovery_report recovery_clock::report(time_point replayed) const {
  auto restored = restored_.value_or(viewed_);
  auto rebuilt = std::max(restored, rebuilt_.value_or(restored));
  recovery_report made;
  made.generation = generation_;
  made.loss = loss_;
  made.detect_s = seconds_between(died_, detected_);
  made.fence_s = seconds_between(detected_, fenced_);
  made.quiesce_s = seconds_between(fenced_, acknowledged_);
  made.respawn_s = seconds_between(acknowledged_, viewed_);
  made.restore_s = seconds_between(viewed_, restored);
  made.rebuild_s = seconds_between(restored, rebuilt);
  made.replay_s = seconds_between(rebuilt, replayed);
  made.total_s = seconds_between(died_, replayed);
  return made;
}

}  // namespace troupe::cluster
