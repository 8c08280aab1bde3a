#pragma once
#include <caf/event_based_actor.hpp>
#include <cstdint>
#include <vector>

#include "troupe/messages/device.hpp"
#include "troupe/scheduler/snapshot_commits.hpp"
#include "troupe/scheduler/state/job_pause.hpp"
#include "troupe/scheduler/state/job_state.hpp"
#include "troupe/scheduler/state/step_tracker.hpp"

namespace troupe::actors::scheduler {

/// Whether the state after the last step of an activity is copied in any case, or if a copy is due by then.
enum class last_copy : std::uint8_t { always, if_due };

/// Grants the steps of one activity (steps or batches, the last of which may end at a closed cut) to the
/// devices. They get a window beyond the last complete step, as far as a pause, uncommitted copies, the disk
/// and the program's thread allow.
class step_credits {
 public:
  /// All outlive this object.
  step_credits(caf::event_based_actor* self, const scheduler_options& options, const job_state& job,
               const job_pause& pause, snapshot_commits& commits)
      : self_(self), options_(options), job_(job), pause_(pause), commits_(commits) {}

  /// The steps of `activity` from `first` on follow, up to `to`, with `extend`.
  void begin(const job::call_request& activity, std::uint64_t first, cut to, last_copy copied);
  /// The activity goes on up to `to`.
  void go_on(cut to, last_copy copied);
  void extend();
  void on_retry();
  /// Ends the activity after the granted steps and one more, if it has one, whose state is copied.
  void shorten();
  /// Returns the steps that this report completes, in order.
  std::vector<finished_step> add(const messages::step_done& done) { return tracker_.add(done); }

  const job::call_request& activity() const { return activity_; }
  /// One past the last step, which may be run in part.
  std::uint64_t end() const { return end_; }
  bool is_complete() const { return pause_.has_reached(to_.devices); }
  last_copy copied() const { return copied_; }
  job::step_timing timing() const { return tracker_.timing(); }
  /// One past the last step that is granted to its end.
  std::uint64_t granted_end() const { return granted_end_; }
  /// Where the granted actions end on each device.
  cut granted() const;
  /// Whether the devices have done all that is granted.
  bool is_granted_done() const { return tracker_.complete() >= granted_end_ && pause_.has_reached(within_); }
  bool waits_for_user() const { return waits_for_user_; }

 private:
  std::uint64_t window() const;
  void grant_steps();
  void grant_within_step();
  bool has_room();
  bool is_user_behind();
  std::vector<messages::due_copy> plan_copies(std::uint64_t until);
  std::uint64_t limit_by_disk(std::uint64_t until);
  std::uint64_t copied_end() const;
  cut limit() const;

  // constant
  caf::event_based_actor* self_;
  const scheduler_options& options_;
  const job_state& job_;
  const job_pause& pause_;
  snapshot_commits& commits_;

  job::call_request activity_;
  cut to_;
  std::uint64_t end_ = 0;
  last_copy copied_ = last_copy::always;  ///< whether step `end_` is copied always, or only if a copy is due
  std::uint64_t granted_end_ = 0;
  std::vector<plan_position> within_;  ///< [num_devices] the last credit that ended within steps; empty: none
  std::uint64_t copies_planned_ = 0;   ///< whether a copy is due is decided up to this step
  step_tracker tracker_;
  bool waits_for_user_ = false;        ///< its mailbox is full; credits are held up
  bool retry_credit_pending_ = false;  ///< a delayed retry_credit is under way
};

}  // namespace troupe::actors::scheduler
