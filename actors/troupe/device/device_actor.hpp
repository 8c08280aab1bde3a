#pragma once
#include <atomic>
#include <caf/actor.hpp>
#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "troupe/device/copy_thread.hpp"
#include "troupe/device/input_waiter.hpp"
#include "troupe/device/step_account.hpp"
#include "troupe/device/step_batches.hpp"
#include "troupe/device/step_sampling.hpp"
#include "troupe/execution/plan_interpreter.hpp"
#include "troupe/execution/replicas/block_pool.hpp"
#include "troupe/execution/replicas/replica_groups.hpp"
#include "troupe/execution/replicas/sum_buffers.hpp"
#include "troupe/fault/fault_plan.hpp"
#include "troupe/messages/device.hpp"
#include "troupe/messages/device_status.hpp"
#include "troupe/messages/scheduler.hpp"
#include "troupe/tensor/memory_account.hpp"
#include "troupe/trace/trace.hpp"
#include "troupe/wire/packed_state.hpp"

namespace troupe::actors::devices {

struct device_options {
  int device = 0;  ///< number among the job's devices
  int rank = 0;    ///< rank of the process that hosts it
  // Shared by the process; must outlive the actor.
  transport::transport* out = nullptr;
  const fault::fault_plan* faults = nullptr;
  trace::event_ring* ring = nullptr;
  /// The newest fenced generation. The device reads it between two actions, and while it waits within one,
  /// and stops if its own is fenced.
  std::shared_ptr<const std::atomic<std::uint64_t>> fenced;
  /// How long the device polls for a missing input before it sleeps. Longer saves wake-ups (some 20 us each)
  /// and occupies a core that others may need. 0: the device never polls, inputs come as messages.
  std::chrono::nanoseconds spin = std::chrono::microseconds(50);
  /// The device publishes its position here; the supervisor samples it.
  std::shared_ptr<messages::device_status> status = std::make_shared<messages::device_status>();
  /// Charged for what the device's stages hold, and for tensors and samples that come for them.
  memory_account account = {};
  /// What other replicas send to its stages (is_between_replicas), from any thread.
  std::shared_ptr<execution::arrivals> from_replicas = std::make_shared<execution::arrivals>();
};

/// Runs the actions of its plan for the stages attached to it (plan_interpreter), waits for their inputs
/// (input_waiter) and its samples (step_batches), and accounts for its steps (step_account).
///
/// States: stopped (no generation) -> running (begin_generation) -> stopped (quiesce). While running, every
/// message makes the device run actions until one lacks an input or all that is granted is done. Messages
/// that arrive meanwhile are handled between two actions.
///
///   message           -> reply                                 errors
///   begin_generation  ->
///   step_credit       -> step_done to the scheduler, per step; other generation: dropped
///                        cut_reached, at an end within a step
///                        parameters_listed, for a hash
///   hash_parameters   -> parameters_hashed                     other call or generation: dropped
///   tensor_arrived    ->                                       the same tensor twice: ends the actor
///   replica_tensors_arrived ->                                 likewise
///   copy_failed       ->                                       ends the actor
///   batch_ready       ->
///   loader_replaced   -> want_batch for each batch not received yet
///   quiesce           -> stopped
///   inspect_device    -> device_report
///   run_on            ->
///
/// Within an action that lanes run together (plan::joint), or a forward whose weights come with
/// a deferred update, the device waits for the other replicas whatever is in its mailbox. A fence of its
/// generation ends the wait; the action is then left as it is.
///
/// Updates are deferred where the next step is granted and no copy of the state is due between the two;
/// step_done is sent when they are complete. Meanwhile the device's published position is that of the G,
/// where it waits for it.
///
/// An exception from a stage_program ends the actor; the supervisor, which monitors it, requests a new
/// generation. Monitors no actor. Detached: its handlers compute.
class device_state : private execution::action_host {
 public:
  static constexpr const char* actor_name = "device";
  device_state(caf::event_based_actor* self, device_options options);
  caf::behavior make_behavior();

 private:
  void on_begin(const messages::begin_generation& command);
  void on_credit(const messages::step_credit& given);
  void on_tensor(const messages::tensor_arrived& arrived);
  void on_copy_failed(const messages::copy_failed& failed);
  void on_batch(const messages::batch_ready& ready);
  void on_loader_replaced(const messages::loader_replaced& replaced);
  messages::stopped on_quiesce(const messages::quiesce& command);

  messages::device_report on_inspect() const;
  void on_run_on();

  void run_ready();
  bool run_one();
  bool run_action();
  bool may_run() const;
  bool has_more_to_run() const;
  plan_position position() const;
  void tell_reached();
  void take_metrics();
  program::step_metrics told_metrics() const;
  void begin_call(const messages::step_credit& given);
  void begin_step();
  void set_status(schedule::device_activity activity) { set_status(activity, position()); }
  void set_status(schedule::device_activity activity, const plan_position& place);
  program::stage_program& program_of(int stage) const;
  device place() const;
  bool is_on_gpu() const { return place().type == device::kind::cuda; }
  void share_memory();
  void listen_to_groups();
  /// Whether the replicas of a stage add up over a group.
  bool has_group(int stage) const;
  /// Whether other processes read what this one computes for the stage.
  bool is_shared(int stage) const;
  const layout::mesh_shape& mesh() const { return command_.job->training.mesh; }
  int lane() const { return command_.job->training.lane_of(options_.device); }
  int slice() const { return mesh().slice_of(lane()); }
  execution::replica_groups::key group_key(int stage) const { return {stage, slice()}; }
  // what the interpreter needs: host_actions.cpp
  const batch* samples() override { return batches_.batch_of(step_); }
  void send(const transport::tensor_tag& tag, tensor value) override;
  device place_of_receiver(const transport::tensor_tag& tag) const;
  copy_thread& started(
      std::optional<copy_thread>& copies, const char* name, std::function<void()> on_idle = [] {});
  tensor sum_memory(int stage, int bucket, std::int64_t num_elements, dtype type) override {
    return is_shared(stage) ? sums_.of(stage, bucket, num_elements, type)
                            : own_sums_.of(stage, bucket, num_elements, type);
  }
  const execution::replica_group* group_of(int stage) override;
  void on_group_failure(const std::exception& cause) override;
  void take_arrivals() override { waiter_.take_from_replicas(); }
  void wait_within(const action& op, const plan_position& awaited) override;
  void on_gather(const action&) override { options_.faults->at(fault::fault_point::unshard, step_); }
  bool may_wait_within() override { return options_.spin.count() > 0; }
  bool may_defer_updates() override;
  void on_prediction(const action& op, const tensor& output) override;
  void on_begin(const action& op) override;
  void on_end(const action& op) override;
  void before_update(const action& op) override;
  void on_begin_deferred(const action& op, std::uint64_t step) override;
  void on_end_deferred(const action& op, std::uint64_t step) override;
  program::step_metrics metrics() override;
  void on_replica_metrics(const std::vector<program::step_metrics>& of_replicas) override;
  std::string non_finite_elsewhere(const action& op) override;
  bool on_non_finite(const action& op, const std::string& what) override;
  // the end of a step: finish_step.cpp
  void finish_step();
  messages::step_done describe_step();
  void begin_next_step();
  void finish_deferred_step();
  void copy_states(const messages::due_copy& due, const program::step_metrics& metrics);
  void copy_beside(const messages::attached_stage& from, const messages::due_copy& due,
                   const std::vector<named_tensor>& state, const std::vector<tensor_contents>& contents);
  // tensors for the program: send_gathered.cpp
  void list_parameters();
  void on_hash(const messages::hash_parameters& wanted);
  void send_weights();
  void send_memory();
  void send_gathered(std::uint32_t index, std::uint32_t stage, const tensor& value);

  // constant
  caf::event_based_actor* self_;
  device_options options_;
  wire::packed_state_pool pool_;
  /// Set by the threads of sends_ and state_copies_.
  std::shared_ptr<std::atomic<bool>> has_failed_to_copy_ = std::make_shared<std::atomic<bool>>(false);
  input_waiter waiter_;
  step_batches batches_;
  step_account account_;
  step_sampling sampling_;
  const program::stage_program::memory_source shared_memory_;  ///< transport::allocate_shared
  execution::block_pool gradients_;                            ///< of the stages that are shared
  execution::sum_buffers sums_;                                ///< the same
  execution::sum_buffers own_sums_;                            ///< of the others

  // current generation
  std::uint64_t generation_ = 0;
  bool running_ = false;
  messages::begin_generation command_;

  // current call and step
  std::optional<job::call_request> call_;
  std::optional<execution::plan_interpreter> interpreter_;
  std::uint64_t step_ = 0;
  plan_position end_;      ///< the credits so far allow the actions before it
  plan_position reached_;  ///< the newest end within a step that the scheduler was told of
  bool step_begun_ = false;
  program::step_metrics metrics_;  ///< of this step, as far as its stages have given them
  /// Of this step, or of the one before while its updates are deferred, of all replicas, once they have told
  /// each other; else empty.
  std::vector<program::step_metrics> replica_metrics_;
  /// Of the step before, while its updates are deferred.
  std::optional<messages::step_done> deferred_step_;
  bool runs_on_ = false;  ///< run_on is in the mailbox
  std::vector<messages::due_copy> copies_;
  std::uint64_t committed_step_ = 0;
  messages::execution_position last_status_;
  /// What the copies of a step's state cost it: their begin, and what updates waited for them.
  std::int64_t copy_ns_ = 0;
  /// From a GPU: tensors to be sent, and copies of the state. Empty until there is one; their threads use
  /// what is before.
  std::optional<copy_thread> sends_, state_copies_;
};

}  // namespace troupe::actors::devices
