// device_state: the plan's reductions (R), which combine gradients of several stages between the last weight
// gradient and the optimizer step. Each stage sends its contribution to all others, and reduces when it has
// all.
#include <algorithm>

#include "troupe/device/device_actor.hpp"

namespace troupe {

tensor_tag device_state::contribution_tag(int to_stage, int reduction, int from_stage) const {
  return {generation_,
          step_,
          call_->index,
          static_cast<std::uint32_t>(to_stage),
          static_cast<std::uint32_t>(reduction * order_.job->num_stages() + from_stage),
          tensor_role::contribution};
}

/// If the next action of the stage that has just run `done` is a reduction, sends its contribution to all
/// participating stages, itself included.
void device_state::send_contribution(const action& done) {
  if (running_plan_.reductions.empty()) return;
  const auto& all = actions();
  auto next = std::find_if(all.begin() + static_cast<std::ptrdiff_t>(position_), all.end(),
                           [&done](const action& other) { return other.stage == done.stage; });
  if (next == all.end() || next->kind != action_kind::reduce_gradient) return;
  auto share = stage(done.stage).program->contribution_to(next->microbatch);
  for (int to : running_plan_.reductions[static_cast<std::size_t>(next->microbatch)])
    send_to_stage(contribution_tag(to, next->microbatch, done.stage), share);
}

bool device_state::run_reduction(const action& op) {
  const auto& stages = running_plan_.reductions[static_cast<std::size_t>(op.microbatch)];
  auto is_here = [&](int from) { return inbox_.has(contribution_tag(op.stage, op.microbatch, from)); };
  if (!std::ranges::all_of(stages, is_here)) return false;
  auto begin = begin_computing();
  options_.faults->at(fault_point::reduce, step_);
  std::vector<tensor> shares;
  for (int from : stages) shares.push_back(*inbox_.take(contribution_tag(op.stage, op.microbatch, from)));
  stage(op.stage).program->reduce(op.microbatch, shares);
  end_computing(op, begin);
  return true;
}

}  // namespace troupe
