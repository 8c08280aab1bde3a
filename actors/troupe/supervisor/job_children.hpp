#pragma once
#include <atomic>
#include <caf/actor.hpp>
#include <caf/event_based_actor.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "troupe/job/job_definition.hpp"
#include "troupe/mesh/logical_device.hpp"
#include "troupe/messages/loader.hpp"
#include "troupe/supervisor/state/child_ledger.hpp"
#include "troupe/supervisor/state/local_progress.hpp"
#include "troupe/supervisor/supervisor_options.hpp"
#include "troupe/tensor/memory_account.hpp"

namespace troupe::actors::supervisor {

/// The children of one supervisor: spawns them with their options, monitors all, and spawns single ones
/// again. What a restart means for other actors is not known here. Schedulers are spawned by the
/// generation_runner.
///
/// The handle of a child that has ended is kept until it is spawned again: a request to it fails at once.
class job_children {
 public:
  /// `self` is the supervisor; it and `options` outlive this object.
  job_children(caf::event_based_actor* self, const supervisor_options& options)
      : self_(self), options_(options) {}
  job_children(const job_children&) = delete;
  job_children& operator=(const job_children&) = delete;
  /// Ends all children.
  ~job_children();

  /// Spawns the children of io but for the loader. The loader and those of compute follow with `host`.
  void begin_job(std::shared_ptr<const job::job_definition> job);
  /// From now on these devices and their stages run here: spawns those that are missing, and stops other
  /// devices. Other stages are set aside: they no longer count as hosted and still hold their copies. A
  /// loader runs here while a stage does that takes samples or computes the loss.
  void host(const std::vector<mesh::device_id>& devices);
  void stop_set_aside();
  /// Ends the children of the job, whose failures are ignored from now on.
  void stop_all();
  void stop(const child_id& one);
  /// Stops a child of the job if it still runs, and spawns it again.
  void respawn(const child_id& one);
  void add_source(const messages::add_source& added);
  /// Of all jobs; spawned when first needed.
  const caf::actor& gatherer();

  /// Of all jobs; invalid unless the supervisor's options ask for it.
  const caf::actor& inspector() const { return inspector_; }
  void start_inspector() { spawn({child_role::inspector, 0}); }

  std::optional<child_id> running(const child_id& wanted) const;
  /// Ends a child that runs with this error, so that the supervisor gets its down message.
  void end_with(const child_id& one, const caf::error& reason);
  /// Monitors an actor that the supervisor has spawned itself.
  void adopt(const caf::actor& actor, child_id one);
  /// The child that had this address, which is no child any more; none: it was stopped before.
  std::optional<child_id> remove(const caf::actor_addr& ended);
  /// Of the job, see supervision_tree; none without a job.
  std::vector<supervised_branch> branches() const;

  bool has_job() const { return job_ != nullptr; }
  /// There must be one.
  const job::job_definition& job() const { return *job_; }
  const std::shared_ptr<const job::job_definition>& shared_job() const { return job_; }

  const std::map<int, caf::actor>& devices() const { return devices_; }  ///< by number in the job
  /// Including those that are set aside.
  const std::map<layout::cell, caf::actor>& stages() const { return stages_; }
  const std::set<layout::cell>& hosted() const { return hosted_; }  ///< cells that this process computes
  bool hosts(const layout::cell& stage) const { return hosted_.contains(stage); }
  std::map<layout::cell, device_receiver> receivers_by_cell();  ///< where tensors for the hosted cells go
  const caf::actor& loader() const { return loader_; }          ///< invalid if no stage here reads samples
  const caf::actor& peer_copy_store() const { return peer_copy_store_; }
  const caf::actor& snapshot_writer() const { return snapshot_writer_; }
  local_progress& progress() { return progress_; }
  std::vector<messages::device_memory_report> device_memory() const;
  child_ledger& ledger() { return ledger_; }

 private:
  int device_of(const layout::cell& stage) const { return job_->placed.device_of(stage).number; }
  void end(const caf::actor& child);
  std::optional<child_id> forget(const caf::actor_addr& address);
  bool reads_samples() const;
  void set_loader(bool is_needed);
  caf::actor handle_of(const child_id& one) const;
  void spawn(const child_id& one);
  const memory_account& account_of(int device);
  void spawn_device(int device);
  void spawn_stage(const layout::cell& stage);
  void spawn_loader();
  void spawn_peer_copy_store();
  void spawn_disk();
  void spawn_snapshot_writer();
  void spawn_gatherer();
  void spawn_inspector();
  bool has_folder() const { return !job_->snapshots.folder.empty(); }

  // constant
  caf::event_based_actor* self_;
  const supervisor_options& options_;
  std::shared_ptr<const job::job_definition> job_;
  std::vector<std::shared_ptr<batch_source>> sources_;

  std::map<int, caf::actor> devices_;
  std::map<int, std::shared_ptr<execution::arrivals>> arrivals_;  ///< by device, see device_options
  std::map<layout::cell, caf::actor> stages_;
  std::set<layout::cell> hosted_;
  caf::actor loader_, peer_copy_store_, snapshot_writer_, gatherer_, inspector_;
  caf::actor disk_;  ///< invalid if the job writes no snapshots
  /// Incremented by the disk actor; a new snapshot writer continues to watch it.
  std::shared_ptr<std::atomic<std::uint64_t>> disk_progress_;
  std::map<int, trace::event_ring*> rings_;
  std::map<int, memory_account> accounts_;  ///< of the job, by device
  local_progress progress_;
  std::map<caf::actor_addr, child_id> monitored_;
  child_ledger ledger_;
};

}  // namespace troupe::actors::supervisor
