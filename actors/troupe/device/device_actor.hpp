#pragma once
#include <atomic>
#include <caf/actor.hpp>
#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "troupe/device/device_status.hpp"
#include "troupe/device/messages.hpp"
#include "troupe/device/step_clock.hpp"
#include "troupe/execution/inbox.hpp"
#include "troupe/execution/plan_interpreter.hpp"
#include "troupe/fault/fault_plan.hpp"
#include "troupe/program/packed_state.hpp"
#include "troupe/trace/trace.hpp"

namespace troupe {

struct device_options {
  int device = 0;  ///< number in the job
  int rank = 0;    ///< of this process
  // Shared by the process; must outlive the actor.
  transport* out = nullptr;
  const fault_plan* faults = nullptr;
  event_ring* ring = nullptr;
  /// The newest fenced generation. The device reads it between two actions and stops if its own is fenced.
  std::shared_ptr<const std::atomic<std::uint64_t>> fenced;
  /// How long the device polls for a missing input before it sleeps. Longer saves wake-ups (some 20 us each)
  /// and occupies a core that others may need. 0: the device never polls, inputs come as messages.
  std::chrono::nanoseconds spin = std::chrono::microseconds(50);
  /// The device publishes its position here; the supervisor samples it.
  std::shared_ptr<device_status> status = std::make_shared<device_status>();
};

/// Runs the actions of its plan for the stages attached to it (plan_interpreter), waits for their inputs, and
/// measures them.
///
/// States: stopped (no generation) -> running (begin_generation) -> stopped (quiesce). While running, every
/// message makes the device run actions until one lacks an input or all granted steps are done.
///
/// A missing tensor reaches the device in one of two ways. If the device owns polling of the data plane
/// (polling_ownership), it polls the transport on its own thread and stores the tensor directly. Otherwise
/// the transport's thread receives the tensor and sends tensor_arrived.
///
///   message           -> reply                                 errors
///   begin_generation  ->
///   grant             -> step_done to the scheduler, per step  other generation: dropped
///   tensor_arrived    ->                                       the same tensor twice: ends the actor
///   batch_ready       ->
///   loader_replaced   -> want_batch for each batch not received yet
///   quiesce           -> stopped
///
/// An exception from a stage_program ends the actor; the supervisor, which monitors it, requests a new
/// generation. Monitors no actor. Detached: its handlers compute.
class device_state : private tensor_waiter, private action_host {
 public:
  static constexpr const char* actor_name = "device";
  device_state(caf::event_based_actor* self, device_options options);
  ~device_state() override;
  caf::behavior make_behavior();

 private:
  void on_begin(const begin_generation& order);
  void on_grant(const grant& given);
  void on_tensor(const tensor_arrived& arrived);
  void on_batch(const batch_ready& ready);
  void on_loader_replaced(const loader_replaced& replaced);
  stopped on_quiesce(const quiesce& order);

  bool is_fenced() const { return options_.fenced->load(std::memory_order_acquire) > generation_; }
  void run_ready();
  void begin_call(const grant& given);
  void begin_step();
  void set_status(device_activity activity);
  stage_program& program_of(int stage) const;
  // inputs: receive_inputs.cpp
  bool take(int from_rank, const tensor_tag& tag, tensor& value) override;
  bool waits() const override;
  bool receive_input();
  void stop_receiving() { options_.out->stop_receiving(*this); }
  void wait_briefly();
  // what the interpreter needs: host_actions.cpp
  const batch* samples() override;
  void send(const tensor_tag& tag, tensor value) override;
  void on_prediction(const action& op, const tensor& output) override;
  void on_begin(const action& op) override;
  void on_end(const action& op) override;
  bool on_non_finite(const action& op, const std::string& what) override;
  // the end of a step: finish_step.cpp
  void finish_step();
  void copy_states(const due_copy& due, const step_metrics& metrics);
  void send_parameters();
  // tensors for the program: send_gathered.cpp
  void send_weights();
  void send_gathered(std::uint32_t index, std::uint32_t stage, const tensor& value);

  // constant
  caf::event_based_actor* self_;
  device_options options_;
  packed_state_pool pool_;

  // current generation
  std::uint64_t generation_ = 0;
  bool running_ = false;
  begin_generation order_;
  inbox inbox_;

  // current call and step
  std::optional<call_request> call_;
  std::optional<plan_interpreter> interpreter_;
  std::uint64_t step_ = 0;
  std::uint64_t end_step_ = 0;
  bool step_begun_ = false;
  std::uint64_t next_wanted_ = 0;
  std::map<std::uint64_t, batch> batches_;
  std::vector<due_copy> copies_;
  std::uint64_t committed_step_ = 0;
  step_clock clock_;
  execution_position last_status_;
  bool input_came_ = false;  ///< since this wait began
  std::int64_t action_begin_ns_ = 0;
  std::string non_finite_;  ///< the first infinite or NaN value of this step; empty: none
  /// Whether an action of this step, or of the previous one, took so long that the device gives up polling
  /// ownership while it computes.
  bool is_busy_ = true, was_busy_ = false;
};

}  // namespace troupe
