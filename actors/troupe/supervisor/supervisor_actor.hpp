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

/// Where children that compute or wait for the disk run: each on a thread of its own, or among the scheduled
/// actors, which is for jobs in virtual time on one thread.
enum class child_threads : std::uint8_t { own, shared };

/// What the process shares with its supervisor; all outlive it.
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
  /// A device that does not stop within this time after a fence makes its whole process a suspect.
  std::chrono::seconds quiesce_timeout = std::chrono::seconds(30);
  std::chrono::seconds restore_timeout = std::chrono::seconds(120);
  child_threads threads = child_threads::own;
  /// A device or loader that does not get on for so long is treated as lost; 0: nobody looks.
  std::chrono::milliseconds progress_timeout{0};
  /// Becomes true when a thread of this process is within code that does not return, so that nobody can wait
  /// for it.
  std::shared_ptr<std::atomic<bool>> stuck;
};

/// Runs one node: starts its actors, leads it through generations, restarts what fails.
///
/// States: outside (before the first view) -> active (view_formed) -> quiescing (fence_raised) -> waiting
/// (all devices stopped, acknowledged) -> active ... A fence may come in any state.
///
///   message       -> reply                                          errors
///   define_job    -> (starts stages, devices, loader, replica_keeper, disk_writer, in place of those of the
///                     job before)
///   add_source    -> to the loader
///   enter_call    -> call_entered to the scheduler
///   program_took  -> gathered_taken to the scheduler
///   fetch_kept    -> gather_tensors to the gatherer, in each generation until the next call
///   cancel_call   -> cancel_training to the scheduler of this node
///   fence_raised  -> quiesce to devices, membership::quiesced       a device that hangs: a suspect
///   view_formed   -> call_entered, over new links
///   restore_order -> restore_stage to stages, node_restored         no state to be had: ends the job
///   state_arrived -> restore_stage to the stage that was lost
///   snapshot_failed -> discard_parts to the disk_writer
///   write_copies    -> write_copy to stages
///   want_results  -> known_results
///   call_finished -> result_seen; to the user's thread
///   peer_broken   -> membership::suspect
///   tensor_lost, restart_wanted -> membership::request_generation   too many: ends the job
///   look_at_progress -> node_progress to the scheduler, while a device stands still
///   recovery_done -> to the user's thread
///   job_over      -> to the user's thread
///   stop_wanted   -> stop_job to the scheduler
///   job_ended, job_was_stopped -> to the user's thread
///
/// Monitors the actors it starts: one that fails is started again with the next generation, which it asks
/// for; bad input and too many failures end the job. Detached: it tears the data plane down and builds it up,
/// which takes milliseconds.
class supervisor_state {
 public:
  static constexpr const char* actor_name = "supervisor";
  /// The lowest rank: every view is complete, so it is always there.
  static constexpr int scheduler_rank = 0;
  supervisor_state(caf::event_based_actor* self, supervisor_options options);
  ~supervisor_state();
  caf::behavior make_behavior();

 private:
  enum class phase { outside, quiescing, waiting, active };

  void on_define(const define_job& order);
  void on_stop(const stop_wanted& wanted);
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
  void ask_what_is_held(const caf::actor& holder);
  void on_held_parts(const held_parts& held);
  node_inventory inventory_now() const;
  void send_entered(node_inventory inventory);
  void on_want_results(const want_results& wanted);
  void confirm(std::uint32_t index);
  // tensors for the program: pass_gathered.cpp
  void expect_gathered(const call_request& call);
  void on_took(const program_took& took);
  void on_fetch(const fetch_kept& wanted);
  void fetch_again();
  void on_cancel(const cancel_call& order);
  const caf::actor& gatherer();
  // children that are made: spawn_children.cpp
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
  void on_restart_wanted(const restart_wanted& wanted);
  void on_tensor_lost(const tensor_lost& lost);
  // children that fail: restart_children.cpp
  bool restart_generation(const std::string& cause);
  void on_down(const caf::down_msg& down);
  void respawn_failed();
  void fail(const std::string& cause);
  void fail_unless_restarted(std::uint64_t generation, const std::string& what, const caf::error& problem);

  struct child {
    enum class kind { device, stage, loader, replica_keeper, disk_writer, scheduler, link, gatherer };
    kind what = kind::device;
    int number = 0;
  };
  static std::string to_string(const child& one);
  void adopt(const caf::actor& actor, child one);

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
  phase phase_ = phase::outside;
  std::uint64_t generation_ = 0;
  /// What this node holds, as of the begin of generation inventory_in_; asked for in asked_in_.
  node_inventory inventory_;
  std::uint64_t inventory_in_ = 0, asked_in_ = 0;
  std::uint64_t inquiry_ = 0;  ///< counts how often was asked; answers to earlier ones are dropped
  std::size_t num_unanswered_ = 0;
  std::chrono::steady_clock::time_point inventory_at_;
  std::size_t still_running_ = 0;
  /// By remote rank: all on the scheduler's node, the scheduler's elsewhere.
  std::map<int, caf::actor> links_;
  caf::actor scheduler_;        ///< or its proxy
  caf::actor local_scheduler_;  ///< only on its rank
  std::optional<restore_order> restoring_;
  std::map<int, attached_stage> ready_;
  step_metrics restored_metrics_;  ///< of the restored step, if the last stage is here
  arrived_states arrived_;
  std::uint64_t interrupted_step_ = 0;
  int stop_signal_ = 0;             ///< that the job is to stop by; 0: none
  std::uint64_t described_in_ = 0;  ///< the generation whose scheduler was told what the job is

  call_queue calls_;

  // progress
  local_progress progress_;
  std::string stall_;  ///< that the scheduler told last, and how often without another one in between
  int num_same_stalls_ = 0;
  std::chrono::steady_clock::time_point looked_;
  std::optional<call_request> fetched_;          ///< whose tensors others are asked for
  std::optional<std::uint32_t> cancelled_call_;  ///< that schedulers are told of
};

}  // namespace troupe
