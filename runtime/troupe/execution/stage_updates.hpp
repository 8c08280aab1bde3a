#pragma once
#include <map>

#include "troupe/execution/plan_run.hpp"
#include "troupe/execution/running_all_reduce.hpp"

namespace troupe::execution {

/// The Gs and As of a device: sums of gradients over the replicas, and optimizer steps.
///
/// Where host and program allow it, the update of a stage is deferred: its G and A count as done as soon as
/// its gradients have left, and the next step may begin. Both end while its forwards run, at the latest
/// before the stage's first backward.
class stage_updates {
 public:
  /// `run` outlives it.
  explicit stage_updates(plan_run& run) : run_(run) {}

  /// Forgets the Gs of the step before that did not end, but no deferred update.
  void begin_step() { running_.clear(); }
  /// For the last backward of a stage before its G: gives the buckets that it completes.
  program::stage_compute::bucket_callback giving_to(const action& all_reduce);
  /// Adds up what has come for the Gs that are still to come after `next`. The device does other things
  /// meanwhile, and the sums are to travel.
  void add_up_before(const action& next);
  /// Gives the buckets that are complete before the G itself.
  void give_buckets(const action& all_reduce) { all_reduce_of(all_reduce).give_buckets(); }
  /// False: buckets are still to come from other replicas, and the update cannot be deferred.
  bool run_all_reduce(const action& op);
  /// False: the step was halted.
  bool run_apply(const action& op);
  /// Whether a step was not applied since a value was infinite or NaN; nothing runs any more.
  bool is_halted() const { return is_halted_; }

  /// Whether updates of this step, or of the one before, are deferred and not complete.
  bool has_deferred() const { return !deferred_.empty(); }
  /// The position of the G of one of them; there must be one.
  plan_position deferred_at() const { return deferred_.begin()->second.position(); }
  /// Lets them go on.
  void progress_deferred();
  /// The update that must end before `op`: that of its stage, unless `op` is a forward, U or S. Of a G also
  /// any of the step before, so that only one step's are deferred at a time. Null: none.
  const running_all_reduce* deferred_before(const action& op) const;

 private:
  running_all_reduce& all_reduce_of(const action& op);
  bool defer(const action& all_reduce);
  const action* apply_after(const action& all_reduce) const;
  bool end_deferred(running_all_reduce& update);
  void progress_within(int stage, bool waits);
  bool halts_before(const action& op);

  plan_run& run_;
  bool is_halted_ = false;
  std::map<int, running_all_reduce> running_;   ///< by stage, of the current step
  std::map<int, running_all_reduce> deferred_;  ///< by stage, of the current or the previous step
};

}  // namespace troupe::execution
