#pragma once
#include <caf/event_based_actor.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "troupe/messages/device.hpp"
#include "troupe/messages/snapshot_writer.hpp"
#include "troupe/scheduler/save_requests.hpp"
#include "troupe/scheduler/state/copy_interval.hpp"
#include "troupe/scheduler/state/disk_snapshots.hpp"
#include "troupe/scheduler/state/held_copies.hpp"
#include "troupe/scheduler/state/job_state.hpp"

namespace troupe::actors::scheduler {

/// The copies of the job's state in one generation: decides when they are due, follows which processes hold
/// them in memory, and commits snapshots whose parts are on disk.
class snapshot_commits {
 public:
  using clock = std::chrono::steady_clock;
  /// All outlive this object. `on_commit_over`: a snapshot is on disk, or has failed there.
  snapshot_commits(caf::event_based_actor* self, const scheduler_options& options, const job_state& job,
                   std::function<void()> on_commit_over);

  // before the restore
  void set_inventory(const recovery::process_inventory& inventory);
  std::vector<recovery::process_inventory> inventories() const { return held_.inventories(); }
  /// Time counts across generations, see disk_snapshots::note_since_last.
  void note_since_last(std::chrono::duration<double> since) { disk_.note_since_last(since, now()); }
  std::chrono::duration<double> since_last() const { return disk_.since_last(now()); }
  /// All processes restore `plan`. `keepers`: members that no device tells what is committed.
  void begin(const recovery::restore_plan& plan, std::set<world_rank> keepers);
  void forget_job();

  // while steps run
  /// The copies due after steps [first, last] of an activity that ends with `end`, a step being named by the
  /// number of steps applied. `complete`: steps that all devices have done.
  std::vector<messages::due_copy> plan(std::uint64_t first, std::uint64_t last, std::uint64_t complete,
                                       std::uint64_t end);
  /// Limits a credit from `granted` so that steps wait while max_pending snapshots are being written: the
  /// snapshots that the user configured are then all written. After disk_wait_limit steps continue and
  /// snapshots are skipped instead.
  std::uint64_t limit_by_disk(std::uint64_t granted, std::uint64_t until, std::uint64_t end);
  /// Credits may be limited for another reason now.
  void on_check_disk_wait() { check_disk_wait_pending_ = false; }
  /// All devices have done `step`, `step_s` seconds after the one before.
  void on_step_done(std::uint64_t step, double step_s, double copy_s);
  std::chrono::duration<double> step_time() const { return interval_.step_time(); }

  // from processes; false: of another generation, or known
  bool on_held(const messages::part_held& held);
  bool on_written(const messages::part_written& written);
  void on_replicas_lost(const messages::replicas_lost& lost);
  void on_replicas_wanted(const messages::replicas_wanted& wanted);
  void on_writes_lost(const messages::writes_lost& lost);
  /// The process's new snapshot writer gets what the previous one has not answered.
  void repeat_commits();

  // at the command of those who watch the job
  /// Writes a snapshot with the next step that is planned; answers when it is on disk.
  void save(save_requests::promise answer);
  void refuse_saves_without_folder();
  /// No steps are about to be done: writes what the owners hold instead.
  void save_held();

  /// The newest step that all owners hold, which is not on disk; none: there is no folder, or nothing newer.
  std::optional<std::uint64_t> unsaved_step() const;
  /// Has the processes' copies of `step` written to disk.
  void write(std::uint64_t step);

  std::uint64_t committed_step() const { return held_.committed_step(job_.job().parts); }
  /// See call_result::replays_from. With a folder a job survives the loss of all copies in memory.
  std::uint64_t replays_from() const;
  std::size_t num_uncommitted() { return held_.num_uncommitted(job_.job().parts); }
  /// Whether copies of a step up to `step` are requested, and not yet committed since.
  bool is_uncommitted(std::uint64_t step) const { return held_.is_uncommitted(step, job_.job().parts); }
  bool is_pending(std::uint64_t step) const { return disk_.is_pending(step); }
  std::size_t num_pending() const { return disk_.num_pending(); }
  /// The newest that this generation knows to be there.
  const std::optional<std::uint64_t>& step_on_disk() const { return step_on_disk_; }

 private:
  void tell_committed();
  void commit(std::uint64_t step, std::vector<snapshot::manifest_part> parts);
  void request_commit(const messages::commit_snapshot& command);
  void on_failed(std::uint64_t step, const std::string& why);
  void end_commit(std::uint64_t step);
  void note_skipping(clock::time_point now);
  void check_disk_wait_later();
  clock::time_point now() const { return self_->clock().now(); }
  bool has_folder() const { return !job_.job().snapshots.folder.empty(); }

  // constant
  caf::event_based_actor* self_;
  const scheduler_options& options_;
  const job_state& job_;
  std::function<void()> on_commit_over_;

  copy_interval interval_;
  std::uint64_t last_copy_due_ = 0;
  held_copies held_;
  std::set<world_rank> keepers_;  ///< members that copies_committed goes to
  std::uint64_t told_committed_ = 0;

  disk_snapshots disk_;
  std::map<std::uint64_t, messages::commit_snapshot>
      committing_;  ///< requested of the snapshot writer, by step
  std::optional<std::uint64_t> step_on_disk_;
  save_requests saves_;
  bool skipping_ = false;                 ///< snapshots are skipped until one is written
  bool check_disk_wait_pending_ = false;  ///< a delayed check_disk_wait is under way
};

}  // namespace troupe::actors::scheduler
