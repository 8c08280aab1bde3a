// The part of device_state that combines gradients with those of other stages, between the last weight
// gradient and the optimizer's step.
#include <algorithm>

#include "troupe/device/device_actor.hpp"

namespace troupe {

tensor_tag device_state::share_tag(int to_stage, int reduction, int from_stage) const {
  return {generation_,
          step_,
          call_->index,
          static_cast<std::uint32_t>(to_stage),
          static_cast<std::uint32_t>(reduction * order_.job->num_stages() + from_stage),
          tensor_role::share};
}

/// If a reduction is the next thing that the stage which has just done something does, the others that take
/// part get its share, and so does the stage itself.
void device_state::give_share(const action& done) {
  if (running_plan_.reductions.empty()) return;
  const auto& all = actions();
  auto next = std::find_if(all.begin() + static_cast<std::ptrdiff_t>(position_), all.end(),
                           [&done](const action& other) { return other.stage == done.stage; });
  if (next == all.end() || next->kind != action_kind::reduce_gradient) return;
  auto share = stage(done.stage).program->share_of(next->microbatch);
  for (int to : running_plan_.reductions[static_cast<std::size_t>(next->microbatch)])
    pass_on(share_tag(to, next->microbatch, done.stage), share);
}

bool device_state::run_reduction(const action& what) {
  const auto& stages = running_plan_.reductions[static_cast<std::size_t>(what.microbatch)];
  auto is_here = [&](int from) { return inbox_.has(share_tag(what.stage, what.microbatch, from)); };
  if (!std::ranges::all_of(stages, is_here)) return false;
  auto begin = begin_computing();
  options_.faults->at(fault_point::reduce, step_);
  std::vector<tensor> shares;
  for (int from : stages) shares.push_back(*inbox_.take(share_tag(what.stage, what.microbatch, from)));
  stage(what.stage).program->reduce(what.microbatch, shares);
  end_computing(what, begin);
  return true;
}

}  // namespace troupe
