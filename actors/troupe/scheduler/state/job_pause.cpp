#include "troupe/scheduler/state/job_pause.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace troupe::actors::scheduler {
namespace {

/// "by 2 microbatches"
std::string text_of(const job::pause_request& request) {
  constexpr std::array<const char*, 3> names = {"step", "microbatch", "action"};
  std::string name = names[static_cast<std::size_t>(request.unit)];
  if (request.count != 1) name += request.unit == step_unit::microbatch ? "es" : "s";
  return "by " + std::to_string(request.count) + " " + name;
}

}  // namespace

void job_pause::learn(const job::pause_state& known) {
  if (known.version > state_.version) state_ = known;
}

void job_pause::begin(activity begun) {
  activity_ = std::move(begun);
  reached_ = activity_.from.devices;
  state_.is_reached = 0;
  if (!is_limited()) return;
  bool is_same =
      state_.call == activity_.call && state_.kind == activity_.kind && state_.stop.size() == reached_.size();
  state_.call = activity_.call;
  state_.kind = activity_.kind;
  stop_at(is_same ? cut{state_.stop} : cut{reached_});
}

/// Between two calls nothing runs.
void job_pause::end() {
  activity_ = {};
  state_.is_reached = state_.is_paused;
}

bool job_pause::can_carry_out(const job::pause_request& request) const {
  return request.command != job::pause_command::step || (is_running() && !activity_.is_replay);
}

std::string job_pause::carry_out(const job::pause_request& request, const cut& granted, std::int64_t now_ms) {
  ++state_.version;
  state_.request = request.id;
  switch (request.command) {
    case job::pause_command::pause:
      if (is_paused()) return "is paused already";
      pause_at(granted, now_ms);
      return "is paused";
    case job::pause_command::resume: {
      job::pause_state running;
      running.version = state_.version;
      running.request = request.id;
      state_ = running;
      return "goes on";
    }
    case job::pause_command::step:
      if (!is_paused()) pause_at(granted, now_ms);
      stop_at(advanced_cut(activity_.running, stop_, request.unit, request.count));
      return "goes on " + text_of(request);
  }
  return {};
}

void job_pause::pause_at(const cut& granted, std::int64_t now_ms) {
  state_.is_paused = 1;
  state_.since_ms = now_ms;
  state_.stop.clear();
  state_.is_reached = is_running() ? 0 : 1;
  if (!is_limited()) return;
  state_.call = activity_.call;
  state_.kind = activity_.kind;
  stop_at(granted);
}

/// Within the activity. What lies between closed cuts is closed.
void job_pause::stop_at(cut stop) {
  for (std::size_t device = 0; device < stop.devices.size(); ++device)
    stop.devices[device] =
        std::clamp(stop.devices[device], activity_.from.devices[device], activity_.to.devices[device]);
  stop_ = std::move(stop);
  state_.stop = stop_.devices;
  state_.is_reached = has_reached(stop_.devices) ? 1 : 0;
}

bool job_pause::add(std::uint32_t device, plan_position position) {
  if (device >= reached_.size()) return false;
  reached_[device] = std::max(reached_[device], position);
  if (!is_limited() || state_.is_reached != 0 || !has_reached(stop_.devices)) return false;
  state_.is_reached = 1;
  return true;
}

bool job_pause::has_reached(const std::vector<plan_position>& positions) const {
  for (std::size_t device = 0; device < positions.size(); ++device)
    if (reached_.at(device) < positions[device]) return false;
  return true;
}

}  // namespace troupe::actors::scheduler
