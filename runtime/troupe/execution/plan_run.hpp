#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "troupe/execution/action_host.hpp"
#include "troupe/execution/inbox/inbox.hpp"
#include "troupe/program/stage_program.hpp"
#include "troupe/schedule/stage_graph.hpp"

namespace troupe::execution {

struct plan_run_options {
  plan running;    ///< has no fault that check_plan finds
  int device = 0;  ///< of the job, see plan::job_device
  pass_kind pass = pass_kind::train;
  std::uint64_t generation = 0;
  std::uint32_t call = 0;
  /// Of a call that does not train.
  std::uint64_t num_batches = std::numeric_limits<std::uint64_t>::max();
  bool shares_metrics = false;  ///< each replica's host gets the metrics of all
};

/// What of a stage's program a plan needs: in one of forwards only the passes alone.
struct running_stage {
  running_stage(program::stage_program& whole) : compute(&whole), parameters(&whole) {}
  explicit running_stage(program::stage_compute& passes) : compute(&passes) {}

  program::stage_compute* compute;
  program::stage_parameters* parameters = nullptr;
};

/// Which batches a device runs: in training all replicas share that of each step, in an evaluation each runs
/// another one.
struct batch_assignment {
  std::uint64_t num_at_once = 1;
  std::uint64_t first = 0;

  std::uint64_t batch_of(std::uint64_t step) const { return step * num_at_once + first; }
};

/// A plan as one logical device runs it: where it is, what its actions are of, and how tensors come and go.
/// The parts of a plan_interpreter share it. Not thread-safe.
class plan_run {
 public:
  /// Returns the program of a stage that the plan has on this device; the program outlives the run.
  using program_lookup = std::function<running_stage(int stage)>;

  /// `inputs` and `host` outlive it.
  plan_run(plan_run_options chosen, const program_lookup& programs, inbox& inputs, action_host& host);

  const plan_run_options& options() const { return options_; }
  const plan& running() const { return options_.running; }
  const schedule::stage_graph& graph() const { return graph_; }
  int lane() const { return lane_; }  ///< of this device
  int replica() const { return running().mesh.replica_of(lane_); }
  inbox& inputs() const { return inputs_; }
  action_host& host() const { return host_; }
  program::stage_compute& compute(int stage) const { return *stages_.at(stage).compute; }
  /// Throws std::logic_error for a stage that has passes only.
  program::stage_parameters& parameters(int stage) const;

  const std::vector<action>& actions() const { return running().actions_of(options_.device); }
  /// The index of one of them.
  std::size_t index_of(const action& op) const { return static_cast<std::size_t>(&op - actions().data()); }

  /// Goes to the first action of a step.
  void begin_step(std::uint64_t step);
  void pass_action() { ++position_; }
  void pass_step() { position_ = actions().size(); }
  std::uint64_t step() const { return step_; }
  batch_assignment assignment_of(int replica) const;
  /// Whether a replica runs the step: for the last one of an evaluation there may be too few batches.
  bool is_run_by(int replica, std::uint64_t step) const;
  std::size_t position() const { return position_; }  ///< index of the next action
  bool is_at_end() const { return position_ == actions().size(); }
  const action& next() const { return actions()[position_]; }
  plan_position next_position() const { return {step_, static_cast<std::uint32_t>(position_)}; }

  /// The optimizer step number `number` since the last flush, in a step of the plan.
  std::uint64_t optimizer_step(std::uint64_t step, int number) const;
  program::microbatch microbatch_of(const action& op) const;
  /// The rows of a microbatch in samples of the step. Those of each optimizer step's replicas lie one after
  /// the other.
  tensor rows_of(const tensor& samples, int microbatch) const;
  /// The rows of all microbatches over which the optimizer step of this one averages.
  tensor averaged_rows_of(const tensor& samples, int microbatch) const;

  /// To this lane.
  transport::tensor_tag tag(transport::tensor_role role, int stage, int microbatch, std::size_t port) const;
  transport::tensor_tag tag_to(int lane, transport::tensor_role role, int stage, int microbatch,
                               std::size_t port) const;
  /// Takes all of them from the inbox, or none if one is missing.
  std::optional<std::vector<tensor>> take(const std::vector<transport::tensor_tag>& tags);
  /// Puts a tensor into the inbox if its stage is on this device, else gives it to the host. A gradient that
  /// is undefined goes to the host as one element of u8, see is_undefined_gradient.
  void deliver(const transport::tensor_tag& tag, tensor value);

 private:
  // constant
  plan_run_options options_;
  schedule::stage_graph graph_;
  std::map<int, running_stage> stages_;  // of this device
  int lane_;
  bool gradients_descend_, averages_weights_;
  inbox& inputs_;
  action_host& host_;
  // the current step
  std::uint64_t step_ = 0;
  std::size_t position_ = 0;
};

/// Whether a tensor came in place of a gradient that is undefined, since what travels has elements. No
/// gradient has its dtype, u8: values of dtypes that are not floating have none.
inline bool is_undefined_gradient(const tensor& value) {
  return value.defined() && value.dtype() == dtype::u8;
}

}  // namespace troupe::execution
