#include "troupe/signals/stop_decision.hpp"

namespace troupe::signals {

stop_decision decide_stop(const stop_progress& now, const stop_limits& limits) {
  if (now.since_job_ended && *now.since_job_ended >= limits.end_alone) return stop_decision::job_ended;
  if (now.since_signal >= limits.grace) return stop_decision::grace_over;
  bool is_alone = !now.stop_requested && !now.since_job_ended;
  if (is_alone && now.since_signal >= limits.answer) return stop_decision::only_this_process;
  return stop_decision::keep_waiting;
}

}  // namespace troupe::signals
