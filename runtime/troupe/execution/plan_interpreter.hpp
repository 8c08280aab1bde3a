#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "troupe/execution/edge_tensors.hpp"
#include "troupe/execution/joint_pass.hpp"
#include "troupe/execution/plan_run.hpp"
#include "troupe/execution/stage_updates.hpp"
#include "troupe/execution/weight_gathers.hpp"

namespace troupe::execution {

/// Runs the actions of one logical device in the order of its plan, each as soon as its inputs are there.
///
/// | action | inputs, which the inbox must have | run by |
/// |---|---|---|
/// | F | the tensor of each input port | here |
/// | I, B | the gradient of each edge from the stage | here |
/// | W | none | here |
/// | R | the partials of all its stages | here |
/// | G, A | buckets of gradients and sums from other lanes | stage_updates |
/// | U, S | weights that other lanes own, which what reads them waits for | weight_gathers |
///
/// Results go to the inbox if the receiving stage is on this device, otherwise to the host (edge_tensors). A
/// stage contributes to an R as soon as the action before it has ended, and likewise to a G. A bucket of the
/// gradients leaves as soon as it is complete, during the last backward before G, or in G, if it depends on
/// sums of others.
///
/// Passes that lanes run together (plan::joint) get microbatch::sums and slice_sums, with which they wait for
/// the other lanes while they run (joint_pass).
///
/// Not thread-safe. Knows no actor, no thread and no network.
class plan_interpreter {
 public:
  using options = plan_run_options;
  using program_lookup = plan_run::program_lookup;

  /// `inputs` and `host` outlive the interpreter.
  plan_interpreter(options chosen, const program_lookup& programs, inbox& inputs, action_host& host);
  plan_interpreter(const plan_interpreter&) = delete;
  plan_interpreter& operator=(const plan_interpreter&) = delete;

  /// Goes to the first action of a step, which is one run of the plan. Programs are told optimizer steps, of
  /// which the plan may have several (plan::flush_every).
  void begin_step(std::uint64_t step);
  /// Goes to the end of the step that has begun: this replica has no batch in it.
  void skip_step();
  /// Lets deferred updates go on, and runs the next action. False: none was run, since an input is missing,
  /// or the step was halted, or there is none. A tensor that a program gives too many or too few, or in
  /// another form than the edge has (edge_forms), throws std::logic_error; what the program throws is passed
  /// on.
  bool run_next();

  const plan& running() const { return run_.running(); }
  const std::vector<action>& actions() const { return run_.actions(); }
  std::size_t position() const { return run_.position(); }  ///< index of the next action in the device's list
  bool is_at_end() const { return run_.is_at_end(); }
  /// Whether updates of this step, or of the one before, are deferred and not complete.
  bool has_deferred_updates() const { return updates_.has_deferred(); }
  /// Lets them go on, and runs no action.
  void progress_deferred_updates() { updates_.progress_deferred(); }
  /// Of the action that is waited for, if run_next could do nothing: the next one, or the G of a deferred
  /// update.
  plan_position waits_at() const;
  /// Of the G of one; has_deferred_updates must hold.
  plan_position deferred_at() const { return updates_.deferred_at(); }
  /// Whether a step was not applied since a value was infinite or NaN; nothing runs any more.
  bool is_halted() const { return updates_.is_halted(); }
  batch_assignment assignment() const { return run_.assignment_of(run_.replica()); }
  bool has_batch(std::uint64_t step) const { return run_.is_run_by(run_.replica(), step); }
  /// Whether the next action misses the samples.
  bool needs_samples() const;

 private:
  bool run(const action& op);
  bool run_forward(const action& op);
  bool run_backward(const action& op);
  bool run_weight_gradient(const action& op);
  bool run_reduction(const action& op);

  bool takes_targets(int stage) const;
  template <class Pass>
  void run_jointly(const action& op, Pass pass);
  joint_pass joint_pass_of(const action& op, layout::mesh_axis axis);
  tensor receive_within(const action& op, const transport::tensor_tag& wanted);
  const action* sum_after(const action& op) const;
  void contribute(const action& next);
  struct reduction_member {
    int lane = 0, stage = 0;
    bool operator==(const reduction_member&) const = default;
  };
  std::vector<reduction_member> members_of(const action& op) const;
  int reduction_of_step(int reduction) const { return reduction % running().reductions_per_step(); }

  plan_run run_;
  edge_tensors edges_;
  stage_updates updates_;
  weight_gathers gathers_;
  /// [position] the next action of the same stage if it is an R or G, to which the stage contributes as soon
  /// as the action has ended; null: it is none.
  std::vector<const action*> contributes_to_;
  /// Of joint passes in the current step, by stage and axis.
  std::map<std::pair<int, layout::mesh_axis>, std::uint32_t> num_pass_messages_;
};

}  // namespace troupe::execution
