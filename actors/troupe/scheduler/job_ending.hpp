#pragma once
#include <caf/event_based_actor.hpp>
#include <string>

#include "troupe/scheduler/job_state.hpp"
#include "troupe/scheduler/snapshot_commits.hpp"

namespace troupe {

/// Ends a job before its last call: after a stop request, once its state is on disk, after an error, or when
/// a loss or gradient is infinite or NaN, with the last finite state on disk.
///
/// The device that found such a value did not apply the step and copies nothing any more, so that no later
/// step can be committed. The newest committed copies in memory are older than that step, and often newer
/// than the newest snapshot on disk: they are written there first.
class job_ending {
 public:
  /// All outlive this object.
  job_ending(caf::event_based_actor* self, const scheduler_options& options, job_state& job,
             snapshot_commits& commits)
      : self_(self), options_(options), job_(job), commits_(commits) {}

  void fail(const std::string& cause);
  /// Whether there is no snapshot folder, or its newest snapshot is up to date; while no call runs, or if
  /// all calls that trained have waited for theirs.
  bool has_nothing_to_save() const;
  void end_stopped();
  /// Logs the value found. True: training continues (policy skip). Else the last finite state is saved, and
  /// job_state::non_finite is set.
  bool continues_after_non_finite(const step_done& done);
  void end_non_finite();

 private:
  void save_last_finite();
  std::string text_of_stop() const;

  // constant
  caf::event_based_actor* self_;
  const scheduler_options& options_;
  job_state& job_;
  snapshot_commits& commits_;

  bool stopped_ = false;
};

}  // namespace troupe
