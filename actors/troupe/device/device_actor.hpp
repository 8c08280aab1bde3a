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
#include "troupe/device/inbox.hpp"
#include "troupe/device/messages.hpp"
#include "troupe/device/step_clock.hpp"
#include "troupe/fault/fault_plan.hpp"
#include "troupe/program/packed_state.hpp"
#include "troupe/trace/trace.hpp"

namespace troupe {

struct device_options {
  int device = 0;  ///< number in the job
  int rank = 0;    ///< of this process
  /// What outlives the actor and is shared by the process.
  transport* out = nullptr;
  const fault_plan* faults = nullptr;
  event_ring* ring = nullptr;
  /// The abort word: the newest generation that has been fenced. Looked at between two actions.
  std::shared_ptr<const std::atomic<std::uint64_t>> fenced;
  /// How long it looks for a missing input before it sleeps. Longer: less often woken up (some 20 us each
  /// time), and a core that others share with it. 0: it never waits itself, its mailbox does.
  std::chrono::nanoseconds patience = std::chrono::microseconds(50);
  /// Where the device says what it does, for the supervisor to watch.
  std::shared_ptr<device_status> status = std::make_shared<device_status>();
};

/// Computes for the stages attached to it, one action of its plan at a time, each as soon as its inputs are
/// there.
///
/// States: stopped (no generation) -> running (begin_generation) -> stopped (quiesce). While running it waits
/// for inputs or for a grant; a message makes it go on as far as it can. For a tensor that is missing it
/// waits in the transport, if it is its turn there, and takes it on its own thread; then the tensor is no
/// message.
///
///   message           -> reply                                 errors
///   begin_generation  ->
///   grant             -> step_done to the scheduler, per step  other generation: dropped
///   tensor_arrived    ->                                       the same tensor twice: ends the actor
///   batch_ready       ->
///   quiesce           -> stopped
///
/// An exception from a stage_program ends the actor; the supervisor sees it and asks for a new generation.
/// Monitors nobody. Detached: it computes in its handlers, and nobody else computes.
class device_state : private tensor_waiter {
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
  stopped on_quiesce(const quiesce& order);

  bool is_fenced() const { return options_.fenced->load(std::memory_order_acquire) > generation_; }
  const std::vector<action>& actions() const;
  void run_ready();
  void begin_call(const grant& given);
  void begin_step();
  void set_status(device_activity activity);
  void set_waiting_status();
  attached_stage& stage(int number);
  // inputs: receive_inputs.cpp
  bool take(int from_rank, const tensor_tag& tag, tensor& value) override;
  bool waits() const override;
  bool receive_input();
  void stop_receiving() { options_.out->stop_receiving(*this); }
  void wait_briefly();
  // actions: run_actions.cpp
  bool run(const action& what);
  bool run_forward(const action& what, const microbatch& which);
  bool run_backward(const action& what, const microbatch& which);
  void run_weight_gradient(const action& what, const microbatch& which);
  std::optional<tensor> samples_for(const action& what, bool targets);
  std::int64_t begin_computing();
  void end_computing(const action& what, std::int64_t begin_ns);
  void pass_on(int to_stage, tensor_role role, int microbatch, tensor value);
  void pass_on(const tensor_tag& tag, tensor value);
  // reductions: reduce_gradients.cpp
  bool run_reduction(const action& what);
  void give_share(const action& done);
  tensor_tag share_tag(int to_stage, int reduction, int from_stage) const;
  // the end of a step: finish_step.cpp
  void finish_step();
  std::string apply_step();
  std::string find_non_finite();
  void copy_states(const due_copy& due, const step_metrics& metrics);
  void send_parameters();
  // what the program gets: give_gathered.cpp
  void give_weights();
  void give_output(const action& what, const tensor& output);
  void give(std::uint32_t place, std::uint32_t stage, const tensor& value);

  // constant
  caf::event_based_actor* self_;
  device_options options_;
  packed_state_pool pool_;

  // current generation
  std::uint64_t generation_ = 0;
  bool running_ = false;
  bool is_halted_ = false;  ///< by a value that is not finite
  begin_generation order_;
  inbox inbox_;

  // current call and step
  std::optional<call_request> call_;
  plan running_plan_;
  std::uint64_t step_ = 0;
  std::uint64_t end_step_ = 0;
  std::size_t position_ = 0;
  bool step_begun_ = false;
  std::uint64_t next_wanted_ = 0;
  std::map<std::uint64_t, batch> batches_;
  std::vector<due_copy> copies_;
  std::uint64_t committed_step_ = 0;
  step_clock clock_;
  device_place last_status_;
  bool input_came_ = false;  ///< since it waits
  /// An action of the step before, or of this one, took so long that the transport's thread should receive
  /// meanwhile.
  bool is_busy_ = true, was_busy_ = false;
};

}  // namespace troupe
