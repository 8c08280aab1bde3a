// device_state: runs the actions of its plan and sends their outputs to the next stages.
#include "troupe/device/device_actor.hpp"

namespace troupe {
namespace {

/// An action longer than this gives up polling ownership; waking the transport's thread takes some
/// microseconds.
constexpr auto long_action = std::chrono::nanoseconds(std::chrono::microseconds(50)).count();

}  // namespace

bool device_state::run(const action& op) {
  microbatch which{step_, op.microbatch, running_plan_.num_microbatches, call_->kind == call_kind::train};
  switch (op.kind) {
    case action_kind::forward:
      return run_forward(op, which);
    case action_kind::backward:
    case action_kind::input_gradient:
      return run_backward(op, which);
    case action_kind::weight_gradient:
      run_weight_gradient(op, which);
      return true;
    case action_kind::reduce_gradient:
      return run_reduction(op);
  }
  return true;
}

/// The rows of this microbatch in the step's batch; none until the loader has sent the batch.
std::optional<tensor> device_state::samples_for(const action& op, bool targets) {
  auto found = batches_.find(step_);
  if (found == batches_.end()) return {};
  const auto& all = targets ? found->second.targets : found->second.inputs;
  auto rows = all.shape()[0] / running_plan_.num_microbatches;
  return all.rows(op.microbatch * rows, rows);
}

bool device_state::run_forward(const action& op, const microbatch& which) {
  auto last = op.stage == order_.job->num_stages() - 1;
  std::optional<tensor> targets = tensor();
  bool predicting = call_->kind == call_kind::predict;
  if (last && !predicting) targets = samples_for(op, true);
  if (!targets) return false;
  auto input = op.stage == 0
                   ? samples_for(op, false)
                   : inbox_.take({generation_, step_, call_->index, static_cast<std::uint32_t>(op.stage),
                                  static_cast<std::uint32_t>(op.microbatch), tensor_role::activation});
  if (!input) return false;
  auto begin = begin_computing();
  options_.faults->at(fault_point::forward, step_);
  auto output = stage(op.stage).program->forward(which, std::move(*input), std::move(*targets));
  if (which.training) clock_.saved(op.stage);
  end_computing(op, begin);
  if (!last)
    send_to_stage(op.stage + 1, tensor_role::activation, op.microbatch, std::move(output));
  else if (predicting)
    send_output(op, output);
  return true;
}

bool device_state::run_backward(const action& op, const microbatch& which) {
  std::optional<tensor> gradient = tensor();
  if (op.stage != order_.job->num_stages() - 1)
    gradient = inbox_.take({generation_, step_, call_->index, static_cast<std::uint32_t>(op.stage),
                            static_cast<std::uint32_t>(op.microbatch), tensor_role::gradient});
  if (!gradient) return false;
  auto begin = begin_computing();
  options_.faults->at(fault_point::backward, step_);
  auto& program = *stage(op.stage).program;
  auto input_gradient = program.backward_input(which, std::move(*gradient));
  // Sent first, so that the previous stage continues while this one computes its weight gradients.
  if (op.stage > 0)
    send_to_stage(op.stage - 1, tensor_role::gradient, op.microbatch, std::move(input_gradient));
  if (op.kind == action_kind::backward) {
    program.backward_weight(which);
    clock_.released(op.stage);
  }
  end_computing(op, begin);
  return true;
}

void device_state::run_weight_gradient(const action& op, const microbatch& which) {
  auto begin = begin_computing();
  stage(op.stage).program->backward_weight(which);
  clock_.released(op.stage);
  end_computing(op, begin);
}

void device_state::send_to_stage(int to_stage, tensor_role role, int microbatch, tensor value) {
  send_to_stage({generation_, step_, call_->index, static_cast<std::uint32_t>(to_stage),
                 static_cast<std::uint32_t>(microbatch), role},
                std::move(value));
}

void device_state::send_to_stage(const tensor_tag& tag, tensor value) {
  auto at = static_cast<std::size_t>(tag.stage);
  if (order_.job->training.device_of_stage[at] == options_.device)
    inbox_.put(tag, std::move(value));
  else
    options_.out->send_tensor(order_.job->rank_of_stage[at], tag, std::move(value));
}

/// Gives up polling ownership if actions take long, so that the transport's thread receives meanwhile.
std::int64_t device_state::begin_computing() {
  set_status(device_activity::computing);
  if (is_busy_ || was_busy_) stop_receiving();
  return now_ns();
}

void device_state::end_computing(const action& op, std::int64_t begin_ns) {
  auto end_ns = now_ns();
  was_busy_ = was_busy_ || end_ns - begin_ns > long_action;
  clock_.add(op, begin_ns, end_ns, generation_, step_);
}

}  // namespace troupe
