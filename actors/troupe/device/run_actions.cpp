// The part of device_state that runs the actions of its plan and passes on what comes of them.
#include "troupe/device/device_actor.hpp"

namespace troupe {
namespace {

/// Waking up the transport's thread takes a few microseconds.
constexpr auto long_action = std::chrono::nanoseconds(std::chrono::microseconds(50)).count();

}  // namespace

bool device_state::run(const action& what) {
  microbatch which{step_, what.microbatch, running_plan_.num_microbatches, call_->kind == call_kind::train};
  switch (what.kind) {
    case action_kind::forward:
      return run_forward(what, which);
    case action_kind::backward:
    case action_kind::input_gradient:
      return run_backward(what, which);
    case action_kind::weight_gradient:
      run_weight_gradient(what, which);
      return true;
    case action_kind::reduce_gradient:
      return run_reduction(what);
  }
  return true;
}

/// The rows of this microbatch in the step's batch; none while the batch is on its way.
std::optional<tensor> device_state::samples_for(const action& what, bool targets) {
  auto found = batches_.find(step_);
  if (found == batches_.end()) return {};
  const auto& all = targets ? found->second.targets : found->second.inputs;
  auto rows = all.shape()[0] / running_plan_.num_microbatches;
  return all.rows(what.microbatch * rows, rows);
}

bool device_state::run_forward(const action& what, const microbatch& which) {
  auto last = what.stage == order_.job->num_stages() - 1;
  std::optional<tensor> targets = tensor();
  bool predicting = call_->kind == call_kind::predict;
  if (last && !predicting && !(targets = samples_for(what, true))) return false;
  auto input = what.stage == 0
                   ? samples_for(what, false)
                   : inbox_.take({generation_, step_, call_->index, static_cast<std::uint32_t>(what.stage),
                                  static_cast<std::uint32_t>(what.microbatch), tensor_role::activation});
  if (!input) return false;
  auto begin = begin_computing();
  options_.faults->at(fault_point::forward, step_);
  auto output = stage(what.stage).program->forward(which, std::move(*input), std::move(*targets));
  if (which.training) clock_.saved(what.stage);
  end_computing(what, begin);
  if (!last)
    pass_on(what.stage + 1, tensor_role::activation, what.microbatch, std::move(output));
  else if (predicting)
    give_output(what, output);
  return true;
}

bool device_state::run_backward(const action& what, const microbatch& which) {
  std::optional<tensor> gradient = tensor();
  if (what.stage != order_.job->num_stages() - 1)
    gradient = inbox_.take({generation_, step_, call_->index, static_cast<std::uint32_t>(what.stage),
                            static_cast<std::uint32_t>(what.microbatch), tensor_role::gradient});
  if (!gradient) return false;
  auto begin = begin_computing();
  options_.faults->at(fault_point::backward, step_);
  auto& program = *stage(what.stage).program;
  auto input_gradient = program.backward_input(which, std::move(*gradient));
  // The stage before can go on while this one computes its weight gradients.
  if (what.stage > 0)
    pass_on(what.stage - 1, tensor_role::gradient, what.microbatch, std::move(input_gradient));
  if (what.kind == action_kind::backward) {
    program.backward_weight(which);
    clock_.released(what.stage);
  }
  end_computing(what, begin);
  return true;
}

void device_state::run_weight_gradient(const action& what, const microbatch& which) {
  auto begin = begin_computing();
  stage(what.stage).program->backward_weight(which);
  clock_.released(what.stage);
  end_computing(what, begin);
}

void device_state::pass_on(int to_stage, tensor_role role, int microbatch, tensor value) {
  pass_on({generation_, step_, call_->index, static_cast<std::uint32_t>(to_stage),
           static_cast<std::uint32_t>(microbatch), role},
          std::move(value));
}

void device_state::pass_on(const tensor_tag& tag, tensor value) {
  auto at = static_cast<std::size_t>(tag.stage);
  if (order_.job->training.device_of_stage[at] == options_.device)
    inbox_.put(tag, std::move(value));
  else
    options_.out->send_tensor(order_.job->rank_of_stage[at], tag, std::move(value));
}

/// What computes for long lets the transport's own thread receive meanwhile.
std::int64_t device_state::begin_computing() {
  set_status(device_activity::computing);
  if (is_busy_ || was_busy_) stop_receiving();
  return now_ns();
}

void device_state::end_computing(const action& what, std::int64_t begin_ns) {
  auto end_ns = now_ns();
  was_busy_ = was_busy_ || end_ns - begin_ns > long_action;
  clock_.add(what, begin_ns, end_ns, generation_, step_);
}

}  // namespace troupe
