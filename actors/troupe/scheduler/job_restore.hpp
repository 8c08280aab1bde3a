#pragma once
#include <caf/event_based_actor.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "troupe/messages/snapshot_writer.hpp"
#include "troupe/recovery/restore_plan.hpp"
#include "troupe/scheduler/job_ending.hpp"
#include "troupe/scheduler/snapshot_commits.hpp"
#include "troupe/scheduler/state/job_state.hpp"

namespace troupe::actors::scheduler {

/// Decides, once per generation and job, which members host the devices, which step all processes restore,
/// and from where: memory, disk or scratch.
class job_restore {
 public:
  struct hooks {
    /// The snapshot cannot be used by the processes of this job.
    std::function<void(const std::string& why)> refuse;
    /// Sends results that the disk had to processes that repeat calls. False: none is behind the current
    /// call.
    std::function<bool()> catch_up;
    /// Ends the current call with the result that it has in `recorded`, the calls of the job that wrote the
    /// snapshot of step `step`. False: it has none there, and is to be computed.
    std::function<bool(const job::call_log& recorded, std::uint64_t step)> repeat;
  };
  /// All outlive this object.
  job_restore(caf::event_based_actor* self, const scheduler_options& options, job_state& job,
              snapshot_commits& commits, job_ending& ending, hooks given);

  /// Devices go to the members of the view, starting from where they were, and these to the newest step that
  /// memory has.
  void begin();
  /// True: all processes have restored their stages.
  bool on_restored(const messages::process_restored& restored);
  /// Requests that the previous snapshot writer has not answered.
  void repeat_requests();
  void forget_job();
  bool has_restored(int rank) const { return process_restored_.at(static_cast<std::size_t>(rank)); }

 private:
  std::set<world_rank> keepers_without_device() const;
  void restore_from_disk_or_scratch();
  void search_disk();
  void on_found(const messages::found_on_disk& found);
  void use(const snapshot::snapshot_manifest& manifest);
  void read_results();
  void restore_from(const snapshot::snapshot_manifest& manifest);
  void restart_from_scratch();
  void restore(const recovery::restore_plan& plan);
  const job::job_definition& job() const { return job_.job(); }

  // constant
  caf::event_based_actor* self_;
  const scheduler_options& options_;
  job_state& job_;
  snapshot_commits& commits_;
  job_ending& ending_;
  hooks hooks_;

  std::optional<snapshot::snapshot_manifest> on_disk_;  ///< the snapshot that is to be used
  std::shared_ptr<job::call_log> recorded_;  ///< results of another job's calls, once they are read
  std::vector<bool> process_restored_;
  std::map<std::int32_t, program::step_metrics>
      metrics_;  ///< of the restored step, by replica           ///< [world_size]
};

}  // namespace troupe::actors::scheduler
