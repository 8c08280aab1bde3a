#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "troupe/execution/edge_forms.hpp"
#include "troupe/execution/inbox.hpp"
#include "troupe/execution/replica_exchange.hpp"
#include "troupe/execution/synchronized_pass.hpp"
#include "troupe/program/batch_source.hpp"
#include "troupe/program/stage_program.hpp"
#include "troupe/schedule/cut.hpp"
#include "troupe/schedule/plan.hpp"
#include "troupe/transport/tensor_tag.hpp"

namespace troupe {

/// What a plan is run for.
enum class pass_kind : std::uint8_t {
  train,
  evaluate,  ///< forwards, and the loss's metrics
  predict    ///< forwards, whose outputs the host gets
};

/// What an interpreter needs from the device that it runs on. Called on the thread that calls run_next.
class action_host {
 public:
  virtual ~action_host() = default;
  /// The samples of the current step; null until they are loaded.
  virtual const batch* samples() = 0;
  /// Sends a tensor to the device of stage tag.stage in replica tag.replica, which is another one.
  virtual void send(const tensor_tag& tag, tensor value) = 0;
  /// See replica_exchange::sum_memory, of the Gs of `stage`.
  virtual tensor sum_memory(int /*stage*/, int /*piece*/, std::int64_t num_elements, dtype type) {
    return tensor::empty({num_elements}, type);
  }
  /// Within an action: puts what has come from other replicas into the inbox. The default does nothing, for
  /// hosts that put it there at once.
  virtual void take_arrivals() {}
  /// Within the action `op`: waits for something to come from other replicas, for the action at `awaited`,
  /// and puts it into the inbox. Throws action_interrupted. The default throws std::logic_error, for hosts
  /// that neither run synchronized stages (plan::synchronized_stages) nor defer updates.
  virtual void wait_within(const action& op, const plan_position& awaited);
  /// Whether the next step may begin before the updates of this one are complete; asked in a G.
  virtual bool may_defer_updates() { return false; }
  /// The output of the stage that computes the loss, when predicting.
  virtual void on_prediction(const action& op, const tensor& output) = 0;
  /// Before and after an action whose inputs are there.
  virtual void on_begin(const action& op) = 0;
  virtual void on_end(const action& op) = 0;
  /// The same for the G and A of a deferred update, of the current step or the one before. They may lie
  /// within another action. A G begins again each time it goes on.
  virtual void on_begin_deferred(const action& /*op*/, std::uint64_t /*step*/) {}
  virtual void on_end_deferred(const action& /*op*/, std::uint64_t /*step*/) {}
  /// The metrics of the step, when all forwards of the stage that computes the loss are done; asked once a
  /// step, if the replicas share them.
  virtual step_metrics metrics() { return {}; }
  /// Those of all replicas, in order.
  virtual void on_replica_metrics(const std::vector<step_metrics>&) {}
  /// Before the optimizer step `op`: what a replica found infinite or NaN, for which this stage is to do as
  /// if it had found it. Empty: nothing, and the stage is asked.
  virtual std::string non_finite_elsewhere(const action&) { return {}; }
  /// Before the optimizer step `op`: the stage found an infinite or NaN loss or gradient (`what`). Returns
  /// whether the step is applied all the same.
  virtual bool on_non_finite(const action& op, const std::string& what) = 0;
};

/// Runs the actions of one logical device in the order of its plan, each as soon as its inputs are there.
///
/// An action takes its inputs from the inbox:
///
/// | action | inputs |
/// |---|---|
/// | F | the tensor of each input port |
/// | I, B | the gradient of each edge from the stage |
/// | R | the contributions of all its stages |
///
/// The gradients of the edges are added up for each output port in the reverse order of
/// stage_graph::outputs_of, as a backward pass does: the last use of a tensor comes first. A tensor that goes
/// to several input ports of a stage is sent once, to the first.
///
/// Results go to the inbox if the receiving stage is on this device, otherwise to the host. A gradient that
/// is undefined goes to the host as one element of u8, which says so. A stage contributes to a reduction as
/// soon as the action before its R has ended, and likewise before its G.
///
/// Gs of a stage add up its gradients over the replicas, see replica_exchange. A piece of the gradients
/// leaves as soon as it is complete, during the last backward before G, or in G, if it depends on sums of
/// others. If the replicas share the step's metrics, these are one piece more of the last G of the stage that
/// computes the loss.
///
/// Where host and program allow it, the update of a stage is deferred: its G and A count as done as soon as
/// its gradients have left, and the next step may begin. Both end while its forwards run, at the latest
/// before the stage's first backward.
///
/// A forward and a backward of a synchronized stage get microbatch::sums, with which they wait for those of
/// the other replicas while they run (synchronized_pass).
///
/// Not thread-safe. Knows no actor, no thread and no network.
class plan_interpreter {
 public:
  struct options {
    plan running;    ///< has no fault that check_plan finds
    int device = 0;  ///< of the job, see plan::job_device
    pass_kind pass = pass_kind::train;
    std::uint64_t generation = 0;
    std::uint32_t call = 0;
    bool shares_metrics = false;  ///< each replica's host gets the metrics of all
  };
  /// Returns the program of a stage that the plan has on this device; the program outlives the interpreter.
  using program_lookup = std::function<stage_program&(int stage)>;

  /// `inputs` and `host` outlive the interpreter.
  plan_interpreter(options chosen, const program_lookup& programs, inbox& inputs, action_host& host);

  /// Goes to the first action of a step, which is one run of the plan. Programs are told optimizer steps, of
  /// which the plan may have several (plan::flush_every).
  void begin_step(std::uint64_t step);
  /// Lets deferred updates go on, and runs the next action. False: none was run, since an input is missing,
  /// or the step was halted, or there is none. A tensor that a program gives too many or too few, or in
  /// another form than the edge has (edge_forms), throws std::logic_error; what the program throws is passed
  /// on.
  bool run_next();

  const plan& running() const { return options_.running; }
  const std::vector<action>& actions() const;
  std::size_t position() const { return position_; }  ///< index of the next action in the device's list
  bool is_at_end() const { return position_ == actions().size(); }
  /// Whether updates of this step, or of the one before, are deferred and not complete.
  bool has_deferred_updates() const { return !deferred_.empty(); }
  /// Lets them go on, and runs no action.
  void progress_deferred_updates();
  /// Of the action that is waited for, if run_next could do nothing: the next one, or the G of a deferred
  /// update.
  plan_position waits_at() const;
  /// Of the G of one; has_deferred_updates must hold.
  plan_position deferred_at() const { return position_of(deferred_.begin()->second); }
  /// Whether a step was not applied since a value was infinite or NaN; nothing runs any more.
  bool is_halted() const { return is_halted_; }
  /// Whether the next action misses the samples.
  bool needs_samples() const;

 private:
  bool run(const action& op);
  bool run_forward(const action& op);
  bool run_backward(const action& op);
  bool run_weight_gradient(const action& op);
  bool run_reduction(const action& op);
  bool run_all_reduce(const action& op);
  bool run_apply(const action& op);

  bool takes_targets(int stage) const;
  microbatch microbatch_of(const action& op) const;
  std::optional<synchronized_pass> synchronized_pass_of(const action& op);
  tensor rows_of(const tensor& samples, int microbatch) const;
  tensor averaged_rows_of(const tensor& samples, int microbatch) const;
  std::optional<std::vector<tensor>> take(const std::vector<tensor_tag>& tags);
  std::vector<tensor> sums_by_port(int stage, std::vector<tensor> gradients) const;
  std::optional<std::vector<tensor>> take_activations(const action& op);
  std::size_t first_port(const edge& passed) const;
  bool is_sent(const edge& passed) const {
    return first_port(passed) == static_cast<std::size_t>(passed.input);
  }
  void send_outputs(const action& op, const std::vector<tensor>& outputs);
  void send_input_gradients(const action& op, const std::vector<tensor>& gradients);
  void contribute(const action& next);
  bool halts_before(const action& op);
  // what replicas do together: replica_actions.cpp
  /// A G from its first piece to its end.
  struct running_all_reduce {
    const action* op = nullptr;
    std::uint64_t step = 0;
    int num_gradient_pieces = 0;
    replica_exchange exchange;
  };
  const action* all_reduce_after(const action& op) const;
  stage_program::piece_callback giving_to(const action& all_reduce);
  void give_piece(running_all_reduce& to, int piece);
  void give_pieces(running_all_reduce& to);
  running_all_reduce& all_reduce_of(const action& op);
  bool has_metrics(const action& all_reduce) const;
  void go_on(running_all_reduce& with);
  void take_piece(const running_all_reduce& of, int piece, const std::vector<tensor>& sums);
  replica_exchange::sender delivering();
  tensor receive_within(const action& op, const tensor_tag& wanted);
  // updates that end in the next step: deferred_updates.cpp
  bool defer(const action& all_reduce);
  const action* apply_after(const action& all_reduce) const;
  bool end_deferred(running_all_reduce& update);
  void progress_within(int stage, bool waits);
  const running_all_reduce* update_before(const action& op) const;
  plan_position position_of(const running_all_reduce& of) const;
  int reduction_of_step(int reduction) const { return reduction % options_.running.reductions_per_step(); }
  std::uint64_t optimizer_step(std::uint64_t step, int number) const;
  void deliver(const tensor_tag& tag, tensor value);
  tensor_tag tag(tensor_role role, int stage, int microbatch, std::size_t port) const;
  stage_program& program(int stage) const { return *programs_.at(stage); }

  // constant
  options options_;
  stage_graph graph_;
  std::map<int, stage_program*> programs_;  // of this device's stages
  int replica_;                             ///< the replica of this device
  bool gradients_descend_;
  /// [position] the next action of the same stage if it is an R or G, to which the stage contributes as soon
  /// as the action has ended; null: it is none.
  std::vector<const action*> contributes_to_;
  inbox& inputs_;
  action_host& host_;
  // the current step
  std::uint64_t step_ = 0;
  std::size_t position_ = 0;
  bool is_halted_ = false;
  edge_forms forms_;
  std::map<int, running_all_reduce> all_reduces_;   ///< key: stage
  std::map<int, std::uint32_t> num_pass_messages_;  ///< key: synchronized stage
  std::map<int, running_all_reduce> deferred_;      ///< by stage, of the current or the previous step
};

}  // namespace troupe
