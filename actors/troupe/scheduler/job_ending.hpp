#pragma once
#include <caf/event_based_actor.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "troupe/scheduler/snapshot_commits.hpp"
#include "troupe/scheduler/state/job_state.hpp"

namespace troupe::actors::scheduler {

/// Ends a job before its last call: after a stop request, once its state is on disk; after an error; or when
/// a loss or gradient is infinite or NaN. In the last case the last finite state is on disk.
///
/// The device that found such a value did not apply the step and copies nothing any more, so that no later
/// step can be committed. The copies of earlier steps, which may still be on their way, are often newer than
/// the newest snapshot on disk: the newest of them is written there first.
class job_ending {
 public:
  /// All outlive this object.
  job_ending(caf::event_based_actor* self, const scheduler_options& options, job_state& job,
             snapshot_commits& commits)
      : self_(self), options_(options), job_(job), commits_(commits) {}

  void fail(const std::string& cause, failure_kind kind = failure_kind::error);
  /// Whether there is no snapshot folder, or its newest snapshot is up to date; while no call runs, or if
  /// all calls that trained have waited for theirs.
  bool has_nothing_to_save() const;
  void end_stopped();
  /// Logs the value found. True: training continues (policy skip). Else the last finite state is saved, and
  /// job_state::non_finite is set.
  bool continues_after_non_finite(const messages::step_done& done);
  /// Once a value was found that is not finite, and whenever a copy was made or written since: writes the
  /// newest copies, and ends the job when they are on disk or cannot be written.
  void save_last_finite();
  void end_non_finite();

 private:
  std::string text_of_stop() const;

  // constant
  caf::event_based_actor* self_;
  const scheduler_options& options_;
  job_state& job_;
  snapshot_commits& commits_;

  bool stopped_ = false, failed_ = false;
  std::uint64_t last_finite_ = 0;           ///< steps that were done when a value was not finite
  std::optional<std::uint64_t> requested_;  ///< the step of the copies that are written since
};

}  // namespace troupe::actors::scheduler
