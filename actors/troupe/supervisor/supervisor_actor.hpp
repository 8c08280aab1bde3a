#pragma once
#include <caf/actor.hpp>
#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/result.hpp>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "troupe/device/messages.hpp"
#include "troupe/link/messages.hpp"
#include "troupe/link/node_links.hpp"
#include "troupe/loader/messages.hpp"
#include "troupe/placement/view.hpp"
#include "troupe/scheduler/messages.hpp"
#include "troupe/stage/messages.hpp"
#include "troupe/supervisor/arrived_states.hpp"
#include "troupe/supervisor/call_queue.hpp"
#include "troupe/supervisor/job_children.hpp"
#include "troupe/supervisor/messages.hpp"
#include "troupe/supervisor/supervisor_options.hpp"

namespace troupe {

/// Runs one node: spawns its actors, takes them through generations, restarts those that fail.
///
/// States: joining (before the first view) -> active (view_formed) -> quiescing (fence_raised) -> waiting
/// (all devices stopped, fence acknowledged) -> active ... A fence may arrive in any state.
///
///   message       -> reply                                          errors
///   define_job    -> (spawns loader, replica_keeper, disk_writer; ends the children of the previous job)
///   add_source    -> to the loader
///   enter_call    -> copies_held, call_entered to the scheduler
///   program_received  -> gathered_received to the scheduler
///   fetch_cached    -> gather_tensors to the gatherer, in each generation until the next call
///   cancel_call   -> cancel_training to the scheduler of this node
///   order_pause   -> pause_requested to the scheduler, one at a time
///   pause_changed ->
///   fence_raised  -> quiesce to devices, membership::quiesced       a device does not stop: suspect
///   view_formed   -> copies_held, call_entered, over new links
///   restore_order -> (spawns stages and devices that it hosts from now on)
///                    restore_stage to stages, devices_known, node_restored  no state available: ends the job
///   copies_committed -> drop_before to the replica_keeper
///   state_arrived -> restore_stage to the stage without a copy
///   snapshot_failed -> discard_parts to the disk_writer
///   write_copies    -> write_copy to stages
///   replicate_copies -> replicate_again to stages
///   restart_due     -> (restarts children of io)
///   want_results  -> known_results
///   call_finished -> an empty reply; to the user's thread           a newer generation: unavailable
///   peer_broken   -> membership::suspect
///   tensor_lost, link_failed, restart_requested -> membership::request_generation   too many: ends the job
///   check_progress -> node_progress to the scheduler, while a device makes no progress
///   recovery_done -> to the user's thread
///   job_done      -> to the user's thread
///   stop_requested   -> stop_job to the scheduler
///   job_ended, job_was_stopped -> to the user's thread
///
/// Monitors the actors it spawns, in two subtrees (supervision_tree). A child of io that fails is spawned
/// again alone: the supervisor gives its new handle to those that use it, tells the scheduler what was lost,
/// and repeats requests that were not answered. For a child of compute it requests a new generation and
/// spawns the child again with the next view. actor_error::bad_input and too many failures end the job.
/// Detached: it destroys and creates the data plane, which blocks for milliseconds.
class supervisor_state {
 public:
  static constexpr const char* actor_name = "supervisor";
  /// Rank 0: every view contains all ranks, so it always exists.
  static constexpr int scheduler_rank = 0;
  supervisor_state(caf::event_based_actor* self, supervisor_options options);
  supervisor_state(const supervisor_state&) = delete;
  supervisor_state& operator=(const supervisor_state&) = delete;
  ~supervisor_state() { end_links({}, "its process has left the job"); }
  caf::behavior make_behavior();

 private:
  enum class phase { joining, quiescing, waiting, active };

  void on_define(const define_job& order);
  void stop_job_children();
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
  void on_replicate(const replicate_copies& order);
  void on_state(const state_arrived& arrived);
  restore_stage order_for(std::uint64_t step, bool from_scratch = false) const;
  void host_devices();
  void on_committed(const copies_committed& committed);
  void restore_one(const restore_source& source);
  void restore_from_keeper(const restore_source& source);
  void read_from_disk_for(const part_id& part);
  void read_from_disk_for(const part_id& part, std::vector<tensor_contents> wanted);
  void hand_to_stage(int stage, restore_stage order);
  void send_copy(const restore_source& source);
  void on_stage_ready(const stage_ready& ready);
  void begin_devices();
  std::shared_ptr<const device_job> make_device_job() const;
  // calls: announce_calls.cpp
  void on_enter(const enter_call& entered);
  caf::result<void> on_finished(const call_finished& finished);
  void follow(const call_queue::outcome& outcome);
  void announce_call();
  void request_inventory(const caf::actor& holder);
  void on_held_parts(const held_parts& held);
  void send_entered();
  known_results on_want_results(const want_results& wanted) const;
  // tensors for the program: pass_gathered.cpp
  void expect_gathered(const call_request& call);
  void on_program_received(const program_received& took);
  void on_fetch(const fetch_cached& wanted);
  void fetch_again();
  void on_cancel(const cancel_call& order);
  const caf::actor& gatherer();
  // pauses of the job: order_pauses.cpp
  void on_order_pause(const order_pause& order);
  void request_pause();
  void on_pause_changed(const pause_changed& changed);
  void repeat_pause_request();
  // the other nodes and the scheduler: connect_nodes.cpp
  void connect_nodes(const membership_view& view);
  void end_links(const std::vector<member_loss>& losses, const std::string& otherwise);
  void on_link_failed(const link_failed& failed);
  troupe::actor_name name_of(actor_role role, int number) const;
  void spawn_scheduler();
  void give_job_to_scheduler();
  void publish_children();
  void give_devices_to_scheduler();
  // progress: watch_progress.cpp
  void begin_watching();
  void on_look();
  void on_restart_requested(const restart_requested& wanted);
  void on_tensor_lost(const tensor_lost& lost);
  // failed children: restart_children.cpp
  void on_down(const caf::down_msg& down);
  void log_restart(const restart_order& order, const std::string& actor, const std::string& reason) const;
  void carry_out(const restart_order& order, const std::string& cause);
  void restart_generation(const std::string& cause);
  void respawn_failed();
  void forget_restarts();
  void fail(const std::string& cause);
  void fail_unless_restarted(std::uint64_t generation, const std::string& what, const caf::error& problem);
  // restarts that disturb no other actor: restart_io.cpp
  void restart_later(const restart_order& order);
  void on_restart_due(const restart_due& due);
  void introduce_loader();
  void note_replicas_lost();
  void introduce_replica_keeper();
  void introduce_disk_writer();
  void introduce_to_stages();
  void on_replica_missing(std::uint64_t generation, const caf::error& problem);
  /// The step restored in this generation; none: not yet.
  std::optional<std::uint64_t> restored_step() const;

  member_id self_id() const { return {options_.rank}; }
  /// Whether this node hosts the stage in this generation.
  bool hosts(int stage) const { return children_.hosted().contains(stage); }
  bool hosts(const part_id& part) const { return hosts(part.of.stage); }

  // constant
  caf::event_based_actor* self_;
  supervisor_options options_;
  std::shared_ptr<const job_definition> job_;

  // children
  job_children children_;
  supervision_tree tree_;
  caf::actor gatherer_;                                          ///< of all jobs
  std::set<child_id> to_respawn_;                                ///< with the next view
  std::map<std::uint64_t, std::vector<child_id>> due_restarts_;  ///< of io, by the number of restart_due
  std::uint64_t num_restarts_due_ = 0;
  /// The newest generation in which the replica keeper failed, and in which a missing replica was found.
  std::uint64_t replicas_lost_in_ = 0, replica_missing_in_ = 0;

  // the generation
  phase phase_ = phase::joining;
  std::uint64_t generation_ = 0;
  /// The copies this node holds, until they are sent (in generation inventory_in_; requested in asked_in_).
  node_inventory inventory_;
  std::uint64_t inventory_in_ = 0, asked_in_ = 0;
  std::uint64_t inquiry_ = 0;  ///< number of the newest inventory request; replies to older ones are dropped
  std::size_t num_unanswered_ = 0;
  std::size_t still_running_ = 0;
  view present_;
  std::shared_ptr<node_links> links_;  ///< to the actors of other nodes; null before the first view
  caf::actor scheduler_;               ///< a proxy unless this node has it
  caf::actor local_scheduler_;         ///< only on its rank
  std::optional<restore_order> restoring_;
  std::set<part_id> reading_;  ///< parts whose state the disk writer has not sent yet
  /// When the newest snapshot was written, as known when the state was restored.
  std::chrono::steady_clock::time_point snapshot_at_;
  std::map<int, attached_stage> ready_;
  step_metrics restored_metrics_;  ///< of the restored step, if this node has the last stage
  arrived_states arrived_;
  std::uint64_t interrupted_step_ = 0;
  int stop_signal_ = 0;             ///< the signal that stops the job; 0: none
  std::uint64_t described_in_ = 0;  ///< the generation whose scheduler has got the job description

  call_queue calls_;

  // pauses
  pause_state pause_;                            ///< the newest that this node knows
  std::deque<pause_request> pause_orders_;       ///< of the program, not carried out yet
  std::optional<std::uint64_t> pause_based_on_;  ///< version with which the first of them was sent

  // progress
  std::string stall_;  ///< the newest stall reported, and how often it was reported in a row
  int num_same_stalls_ = 0;
  std::chrono::steady_clock::time_point looked_;
  std::optional<call_request> fetched_;          ///< the call whose tensors are requested from caches
  std::optional<std::uint32_t> cancelled_call_;  ///< sent to the scheduler of each generation
};

}  // namespace troupe
