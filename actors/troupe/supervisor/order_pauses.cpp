// supervisor_state: passes the program's requests to pause the job to the scheduler, and keeps what came of
// them.
#include <random>

#include "troupe/scheduler/messages.hpp"
#include "troupe/supervisor/supervisor_actor.hpp"

namespace troupe {

void supervisor_state::on_order_pause(const order_pause& order) {
  // Drawn, because an earlier process of this rank may have made requests too.
  std::random_device random;
  pause_orders_.push_back(order.request);
  pause_orders_.back().id = std::uint64_t{random()} << 32 | random();
  request_pause();
}

/// One request at a time, based on the newest known state: each is carried out once, whatever fails.
void supervisor_state::request_pause() {
  if (pause_orders_.empty() || pause_based_on_ || phase_ != phase::active) return;
  pause_based_on_ = pause_.version;
  self_->send(scheduler_, pause_requested{generation_, options_.rank, pause_.version, pause_orders_.front()});
}

void supervisor_state::on_pause_changed(const pause_changed& changed) {
  if (changed.generation != generation_ || changed.state.version < pause_.version) return;
  pause_ = changed.state;
  options_.pause->set(pause_);
  if (!pause_based_on_ || pause_.version == *pause_based_on_) return;
  if (pause_.request == pause_orders_.front().id) pause_orders_.pop_front();
  pause_based_on_.reset();
  request_pause();
}

/// The scheduler of the last generation may have carried out the request, or not: this node's call_entered or
/// another's says so.
void supervisor_state::repeat_pause_request() {
  pause_based_on_.reset();
  request_pause();
}

}  // namespace troupe
