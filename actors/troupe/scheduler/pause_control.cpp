#include "troupe/scheduler/pause_control.hpp"

#include <utility>

#include "troupe/messages/supervisor.hpp"
#include "troupe/posix/unix_time.hpp"

namespace troupe::actors::scheduler {

void pause_control::open() {
  if (!std::exchange(is_open_, true) && pause_.state().version > 0) tell();
}

void pause_control::end() {
  pause_.end();
  tell_if_paused();
}

bool pause_control::carry_out(const cut& granted) {
  if (!is_open_) return false;
  bool changed = false;
  std::vector<messages::pause_requested> waiting;
  for (const auto& wanted : std::exchange(requests_, {})) {
    if (wanted.based_on != pause_.state().version) {
      tell(wanted.rank);
    } else if (!pause_.can_carry_out(wanted.request)) {
      waiting.push_back(wanted);
    } else {
      auto done = pause_.carry_out(wanted.request, granted, posix::unix_now_ms());
      options_.log->info("job {} generation={} asked_by={}", done, options_.generation, wanted.rank);
      changed = true;
    }
  }
  requests_.insert(requests_.begin(), waiting.begin(), waiting.end());
  if (changed) tell();
  return changed;
}

bool pause_control::add_reached(std::uint32_t device, plan_position position) {
  if (!pause_.add(device, position)) return false;
  tell();
  return true;
}

void pause_control::tell_if_paused() const {
  if (pause_.is_paused()) tell();
}

void pause_control::tell() const {
  for (int rank = 0; rank < options_.world_size; ++rank) tell(rank);
}

void pause_control::tell(int rank) const {
  self_->send(options_.supervisor_of(rank), messages::pause_changed{options_.generation, pause_.state()});
}

}  // namespace troupe::actors::scheduler
