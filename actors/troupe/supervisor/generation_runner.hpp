#pragma once
#include <caf/error.hpp>
#include <caf/event_based_actor.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "troupe/job/call_log.hpp"
#include "troupe/messages/supervisor.hpp"
#include "troupe/supervisor/job_children.hpp"
#include "troupe/supervisor/process_connections.hpp"
#include "troupe/supervisor/state/supervision_tree.hpp"
#include "troupe/supervisor/supervisor_options.hpp"

namespace troupe::actors::supervisor {

/// The generation that a process is in. generation_runner changes it, the other parts of a supervisor read
/// it.
struct process_generation {
  enum class phase : std::uint8_t { joining, quiescing, waiting, active };
  phase now = phase::joining;
  std::uint64_t number = 0;
  /// The newest step that a device was in when a fence stopped it; 0: none, or its recovery is over.
  std::uint64_t interrupted_step = 0;

  bool is_active() const { return now == phase::active; }
  /// Whether this is the generation, and runs.
  bool runs(std::uint64_t generation) const { return is_active() && generation == number; }
};

/// Takes one process from a generation to the next. Stops its devices at a fence and acknowledges it. With
/// the view it starts the children of compute that failed, the connections and, on its rank, the scheduler.
/// Asks for a generation when one is needed, and ends the job when that has not helped.
class generation_runner {
 public:
  /// Rank 0: every view contains all ranks, so it always exists.
  static constexpr int scheduler_rank = 0;

  /// All outlive this object. `completed` is for schedulers.
  generation_runner(caf::event_based_actor* self, const supervisor_options& options, job_children& children,
                    process_connections& connections, supervision_tree& tree,
                    std::shared_ptr<job::call_log> completed);

  const process_generation& current() const { return current_; }
  /// Begins to stop the process for the fence's generation, and acknowledges when all devices have stopped.
  void quiesce(const messages::fence_raised& fence);
  /// Tells the agent and, after some seconds, the log which devices have not stopped.
  void on_check_stopping(const messages::check_stopping& check);
  /// False: the view is of an older generation, or the devices have not stopped yet.
  bool begin(const cluster::membership_view& formed);
  void on_recovered(std::uint64_t generation);
  void forget_job();

  // failures
  /// A child of compute has failed, or one of io too often: carries out what the tree has decided.
  void carry_out(const restart_command& command, const std::string& cause);
  /// Asks for a new generation although no child has failed. Counts as a restart of compute.
  void request(const std::string& cause);
  /// As request, for what ends the job if it happens again and again while no step is completed. `stall`:
  /// what has happened and at which step, equal in these cases.
  void request_after_stall(const std::string& cause, const std::string& stall);
  void fail_job(const std::string& cause, failure_kind kind = failure_kind::error) {
    options_.members->fail_job(cause, kind);
  }
  /// For an error reply of a child. If the child has ended, it is spawned again; an error that a living child
  /// returns is permanent and fails the job.
  void fail_unless_restarted(std::uint64_t generation, const std::string& what, const caf::error& problem);
  /// This process cannot continue: leaves the job as lost, or ends the job if it is the only process.
  void give_up(const std::string& cause);

  // what the scheduler of this generation is told, and those of later ones when they are spawned
  void tell_job();
  void tell_stop(int signal);
  void tell_cancelled(std::uint32_t call);

 private:
  void stop_device(int number, const caf::actor& device);
  void check_stopping_later(std::uint32_t number);
  bool is_stopping_for(std::uint64_t generation) const {
    return generation == current_.number && current_.now == process_generation::phase::quiescing;
  }
  void note_stopped(std::uint64_t generation, int device, std::uint64_t interrupted_step);
  void acknowledge();
  void respawn_failed();
  void spawn_scheduler();

  // constant
  caf::event_based_actor* self_;
  const supervisor_options& options_;
  job_children& children_;
  process_connections& connections_;
  supervision_tree& tree_;
  std::shared_ptr<job::call_log> completed_;

  process_generation current_;
  std::set<int> stopping_;         ///< devices that have not stopped for the fence
  std::set<child_id> to_respawn_;  ///< children that start again with the next view
  std::string stall_;              ///< the newest one, and how often it was reported in a row
  int num_same_stalls_ = 0;
  std::optional<int> stop_signal_;  ///< of the request to stop the job
  std::optional<std::uint32_t> cancelled_call_;
};

}  // namespace troupe::actors::supervisor
