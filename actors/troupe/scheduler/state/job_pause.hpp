#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "troupe/job/call.hpp"
#include "troupe/job/pause.hpp"
#include "troupe/schedule/cut.hpp"
#include "troupe/schedule/plan.hpp"

namespace troupe::actors::scheduler {

/// Says where a paused job stops, and whether its devices stand there. The job stops at a closed cut of the
/// plan that it runs, so that a pause only withholds credits: no device is left waiting for another.
class job_pause {
 public:
  /// What runs in one call between two closed cuts of a plan, see call_runner.
  struct activity {
    std::uint32_t call = 0;
    job::call_kind kind = job::call_kind::train;
    bool is_replay = false;  ///< of steps that were done before; they are not paused
    plan running;
    cut from, to;
  };

  const job::pause_state& state() const { return state_; }
  bool is_paused() const { return state_.is_paused != 0; }
  /// The state as a process knows it. The newest one counts.
  void learn(const job::pause_state& known);

  void begin(activity begun);
  void end();

  /// A step needs the plan of a running activity; anything else can be carried out at any time.
  bool can_carry_out(const job::pause_request& request) const;
  /// `granted`: up to where the devices of the running activity go. Returns what was done, for the log.
  std::string carry_out(const job::pause_request& request, const cut& granted, std::int64_t now_ms);

  /// Up to where the running activity may be granted; null: to its end.
  const cut* limit() const { return is_limited() ? &stop_ : nullptr; }
  /// A device of the running activity has done all before `position`. True: with that the devices stand at
  /// the limit.
  bool add(std::uint32_t device, plan_position position);
  /// Whether every device has done what comes before its position.
  bool has_reached(const std::vector<plan_position>& positions) const;
  /// Whether the job is paused and nothing that is granted is left to be done.
  bool stands() const { return is_limited() && state_.is_reached != 0; }

 private:
  bool is_running() const { return !activity_.running.devices.empty(); }
  bool is_limited() const { return is_paused() && is_running() && !activity_.is_replay; }
  void pause_at(const cut& granted, std::int64_t now_ms);
  void stop_at(cut stop);

  job::pause_state state_;
  activity activity_;  ///< without devices: none
  cut stop_;           ///< the cut with the positions of state_.stop
  std::vector<plan_position> reached_;
};

}  // namespace troupe::actors::scheduler
