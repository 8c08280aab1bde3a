#include "troupe/stop_wait.hpp"

namespace troupe {

stop_wait_end has_waited_enough(const stop_wait& now, const stop_limits& limits) {
  if (now.since_job_ended && *now.since_job_ended >= limits.end_alone) return stop_wait_end::job_ended;
  if (now.since_signal >= limits.grace) return stop_wait_end::grace_over;
  bool is_alone = !now.stop_wanted && !now.since_job_ended;
  if (is_alone && now.since_signal >= limits.answer) return stop_wait_end::sent_to_it_alone;
  return stop_wait_end::none;
}

}  // namespace troupe
