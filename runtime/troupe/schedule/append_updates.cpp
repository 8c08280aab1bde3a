#include "troupe/schedule/append_updates.hpp"

#include <algorithm>

namespace troupe::schedule {
namespace {

std::vector<action>& device_with(int stage, plan& made) {
  auto device = made.device_of_stage[static_cast<std::size_t>(stage)];
  return made.devices[static_cast<std::size_t>(device)];
}

bool averages_weights(const plan& training) { return training.num_replicas > 1 && training.averages_weights; }
bool sums_gradients(const plan& training) { return training.num_replicas > 1 && !training.averages_weights; }

}  // namespace

std::vector<action> with_reductions(const std::vector<action>& actions, const plan& training) {
  std::vector<action> result;
  for (const auto& op : actions) {
    auto add_all_reduce = [&] { result.push_back({op.stage, action_kind::all_reduce, op.microbatch}); };
    auto sum_over_replicas = [&](int after) {
      if (sums_gradients(training) && after == training.reductions_before_all_reduce) add_all_reduce();
    };
    if (op.kind == action_kind::apply) sum_over_replicas(0);
    for (int index = 0; op.kind == action_kind::apply && index < training.reductions_per_step(); ++index) {
      int number = op.microbatch * training.reductions_per_step() + index;
      const auto& stages = training.reductions[static_cast<std::size_t>(number)];
      if (std::ranges::count(stages, op.stage) > 0)
        result.push_back({op.stage, action_kind::reduce_gradient, number});
      sum_over_replicas(index + 1);
    }
    result.push_back(op);
    if (op.kind == action_kind::apply && averages_weights(training)) add_all_reduce();
  }
  return result;
}

void append_updates(plan& made) {
  if (made.kind == schedule_kind::forward_only) return;
  int last = made.flush_every - 1;
  auto sum_over_replicas = [&made, last](int after) {
    if (!sums_gradients(made) || after != made.reductions_before_all_reduce) return;
    for (int stage = made.num_stages; stage-- > 0;)  // as their gradients are complete
      device_with(stage, made).push_back({stage, action_kind::all_reduce, last});
  };
  sum_over_replicas(0);
  for (int index = 0; index < made.reductions_per_step(); ++index) {
    int number = last * made.reductions_per_step() + index;
    for (int stage : made.reductions[static_cast<std::size_t>(number)])
      device_with(stage, made).push_back({stage, action_kind::reduce_gradient, number});
    sum_over_replicas(index + 1);
  }
  for (int stage = 0; stage < made.num_stages; ++stage)
    device_with(stage, made).push_back({stage, action_kind::apply, last});
  for (int stage = 0; averages_weights(made) && stage < made.num_stages; ++stage)
    device_with(stage, made).push_back({stage, action_kind::all_reduce, last});
}

}  // namespace troupe::schedule
