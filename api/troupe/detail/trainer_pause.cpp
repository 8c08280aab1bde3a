// Trainer: pauses the job and takes it further by single steps.
#include "troupe/detail/world_state.hpp"
#include "troupe/trainer.hpp"

namespace troupe {
namespace {

/// The scheduler works out each of these.
constexpr std::uint64_t most_small_steps = 1000;

}  // namespace

void Trainer::pause() { world_.shared_->self->request_pause({.command = actors::job::pause_command::pause}); }

void Trainer::resume() {
  world_.shared_->self->request_pause({.command = actors::job::pause_command::resume});
}

void Trainer::step(step_unit unit, std::uint64_t count) {
  if (count == 0 || (unit != step_unit::step && count > most_small_steps))
    throw bad_input("[Trainer::step] expected a count from 1 to " + std::to_string(most_small_steps) +
                    " (of whole steps: at least 1), got " + std::to_string(count));
  world_.shared_->self->request_pause(
      {.command = actors::job::pause_command::step, .unit = unit, .count = count});
}

troupe::pause_status Trainer::pause_status() const {
  auto state = world_.shared_->self->pause();
  std::chrono::system_clock::time_point since{std::chrono::milliseconds(state.since_ms)};
  return {state.is_paused != 0, state.is_reached != 0, since, {state.stop}, state.version};
}

}  // namespace troupe
