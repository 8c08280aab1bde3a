#pragma once
#include <spdlog/logger.h>

#include <caf/actor.hpp>
#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "troupe/device/device_actor.hpp"
#include "troupe/job/client_mailbox.hpp"
#include "troupe/link/inbound_gate.hpp"
#include "troupe/loader/messages.hpp"
#include "troupe/recovery/restart_policy.hpp"
#include "troupe/stage/messages.hpp"
#include "troupe/supervisor/arrived_states.hpp"
#include "troupe/supervisor/call_queue.hpp"
#include "troupe/supervisor/local_progress.hpp"
#include "troupe/supervisor/messages.hpp"
#include "troupe/supervisor/stage_directory.hpp"

namespace troupe {

/// Where children that compute or block run. own: detached, a thread each. shared: as scheduled actors, for
/// tests that run whole jobs in virtual time on one thread.
enum class child_threads : std::uint8_t { own, shared };

/// Pointers are to objects of the process that outlive the supervisor.
struct supervisor_options {
  int rank = 0;
  int world_size = 1;
  std::string host;
  std::string numeric_class;
  transport* out = nullptr;
  membership* members = nullptr;
  inbound_gate* gate = nullptr;
  stage_directory* directory = nullptr;
  const fault_plan* faults = nullptr;
  trace_recorder* trace = nullptr;
  std::shared_ptr<std::atomic<std::uint64_t>> fenced;
  std::shared_ptr<client_mailbox> client;
  std::shared_ptr<spdlog::logger> log;
  restart_options restarts;
  /// If a device does not stop within this time after a fence, the supervisor reports its process as suspect.
  std::chrono::seconds quiesce_timeout = std::chrono::seconds(30);
  std::chrono::seconds restore_timeout = std::chrono::seconds(120);
  child_threads threads = child_threads::own;
  /// A device or loader without progress for this long counts as lost; 0: not watched.
  std::chrono::milliseconds progress_timeout{0};
  /// Set when a thread of this process is in code that does not return, so that it cannot be joined.
  std::shared_ptr<std::atomic<bool>> stuck;
};

/// Runs one node: spawns its actors, takes them through generations, restarts those that fail.
///
/// States: joining (before the first view) -> active (view_formed) -> quiescing (fence_raised) -> waiting
/// (all devices stopped, fence acknowledged) -> active ... A fence may arrive in any state.
///
///   message       -> reply                                          errors
///   define_job    -> (spawns stages, devices, loader, replica_keeper, disk_writer, in place of those of the
///                     previous job)
///   add_source    -> to the loader
///   enter_call    -> call_entered to the scheduler
///   program_received  -> gathered_received to the scheduler
///   fetch_cached    -> gather_tensors to the gatherer, in each generation until the next call
///   cancel_call   -> cancel_training to the scheduler of this node
///   fence_raised  -> quiesce to devices, membership::quiesced       a device does not stop: suspect
///   view_formed   -> call_entered, over new links
///   restore_order -> restore_stage to stages, node_restored         no state available: ends the job
///   state_arrived -> restore_stage to the stage without a copy
///   snapshot_failed -> discard_parts to the disk_writer
///   write_copies    -> write_copy to stages
///   want_results  -> known_results
///   call_finished -> result_seen; to the user's thread
///   peer_broken   -> membership::suspect
///   tensor_lost, restart_requested -> membership::request_generation   too many: ends the job
///   check_progress -> node_progress to the scheduler, while a device makes no progress
///   recovery_done -> to the user's thread
///   job_done      -> to the user's thread
///   stop_requested   -> stop_job to the scheduler
///   job_ended, job_was_stopped -> to the user's thread
///
/// Monitors the actors it spawns. If one fails, the supervisor requests a new generation and respawns the
/// actor with it; actor_error::bad_input and too many failures end the job. Detached: it destroys and creates
/// the data plane, which blocks for milliseconds.
class supervisor_state {
 public:
  static constexpr const char* actor_name = "supervisor";
  /// Rank 0: every view contains all ranks, so it always exists.
  static constexpr int scheduler_rank = 0;
  supervisor_state(caf::event_based_actor* self, supervisor_options options);
  ~supervisor_state();
  caf::behavior make_behavior();

 private:
  enum class phase { joining, quiescing, waiting, active };

  void on_define(const define_job& order);
  void on_stop(const stop_requested& wanted);
  void give_up(const std::string& cause);
  // membership: change_generation.cpp
  void on_fence(const fence_raised& fence);
  void on_view(const view_formed& formed);
  void on_peer_broken(const peer_broken& broken);
  void acknowledge_fence();
  // restoring: restore_stages.cpp
  void on_restore(const restore_order& order);
  void on_snapshot_failed(const snapshot_failed& failed);
  void on_write_copies(const write_copies& order);
  void on_state(const state_arrived& arrived);
  restore_stage order_for(std::uint64_t step, bool from_scratch = false) const;
  void restore_one(const restore_source& source);
  void hand_to_stage(int stage, restore_stage order);
  void send_copy(const restore_source& source);
  void on_stage_ready(const stage_ready& ready);
  void begin_devices();
  std::shared_ptr<const device_job> make_device_job() const;
  // calls: announce_calls.cpp
  void on_enter(const enter_call& entered);
  void on_finished(const call_finished& finished);
  void follow(const call_queue::outcome& outcome);
  void announce_call();
  void request_inventory(const caf::actor& holder);
  void on_held_parts(const held_parts& held);
  node_inventory inventory_now() const;
  void send_entered(node_inventory inventory);
  void on_want_results(const want_results& wanted);
  void confirm(std::uint32_t index);
  // tensors for the program: pass_gathered.cpp
  void expect_gathered(const call_request& call);
  void on_program_received(const program_received& took);
  void on_fetch(const fetch_cached& wanted);
  void fetch_again();
  void on_cancel(const cancel_call& order);
  const caf::actor& gatherer();
  // spawning children: spawn_children.cpp
  void spawn_children();
  void spawn_device(int device);
  void spawn_stage(int stage);
  void spawn_loader();
  void spawn_replica_keeper();
  void spawn_disk_writer();
  void connect_nodes();
  void spawn_scheduler();
  void give_job_to_scheduler();
  void publish_children();
  void stop_children();
  // progress: watch_progress.cpp
  void begin_watching();
  void on_look();
  void on_restart_requested(const restart_requested& wanted);
  void on_tensor_lost(const tensor_lost& lost);
  // failed children: restart_children.cpp
  bool restart_generation(const std::string& cause);
  void on_down(const caf::down_msg& down);
  void respawn_failed();
  void fail(const std::string& cause);
  void fail_unless_restarted(std::uint64_t generation, const std::string& what, const caf::error& problem);

  struct child {
    enum class kind { device, stage, loader, replica_keeper, disk_writer, scheduler, link, gatherer };
    kind role = kind::device;
    int number = 0;
  };
  static std::string to_string(const child& one);
  void adopt(const caf::actor& actor, child one);

  /// Whether this node owns the stage.
  bool hosts(int stage) const { return stages_.contains(stage); }

  // constant
  caf::event_based_actor* self_;
  supervisor_options options_;
  std::shared_ptr<const job_definition> job_;
  std::vector<std::shared_ptr<batch_source>> sources_;

  // children
  std::map<int, caf::actor> devices_;  ///< by number in the job
  std::map<int, caf::actor> stages_;   ///< by number in the job
  caf::actor loader_;
  caf::actor replica_keeper_;
  caf::actor disk_writer_;
  caf::actor gatherer_;  ///< of all jobs
  std::map<int, event_ring*> rings_;
  std::map<caf::actor_addr, child> children_;
  std::vector<child> to_respawn_;
  std::vector<std::chrono::steady_clock::time_point> restart_times_;

  // the generation
  phase phase_ = phase::joining;
  std::uint64_t generation_ = 0;
  /// The copies this node holds, as of the start of generation inventory_in_; requested in asked_in_.
  node_inventory inventory_;
  std::uint64_t inventory_in_ = 0, asked_in_ = 0;
  std::uint64_t inquiry_ = 0;  ///< number of the newest inventory request; replies to older ones are dropped
  std::size_t num_unanswered_ = 0;
  std::chrono::steady_clock::time_point inventory_at_;
  std::size_t still_running_ = 0;
  /// By remote rank: to all nodes on the scheduler's node, elsewhere to the scheduler's node.
  std::map<int, caf::actor> links_;
  caf::actor scheduler_;        ///< a proxy unless this node has it
  caf::actor local_scheduler_;  ///< only on its rank
  std::optional<restore_order> restoring_;
  std::map<int, attached_stage> ready_;
  step_metrics restored_metrics_;  ///< of the restored step, if this node has the last stage
  arrived_states arrived_;
  std::uint64_t interrupted_step_ = 0;
  int stop_signal_ = 0;             ///< the signal that stops the job; 0: none
  std::uint64_t described_in_ = 0;  ///< the generation whose scheduler has got the job description

  call_queue calls_;

  // progress
  local_progress progress_;
  std::string stall_;  ///< the newest stall reported, and how often it was reported in a row
  int num_same_stalls_ = 0;
  std::chrono::steady_clock::time_point looked_;
  std::optional<call_request> fetched_;          ///< the call whose tensors are requested from caches
  std::optional<std::uint32_t> cancelled_call_;  ///< sent to the scheduler of each generation
};

}  // namespace troupe
