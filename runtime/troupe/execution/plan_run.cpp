#include "troupe/execution/plan_run.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "troupe/schedule/gradient_order.hpp"

namespace troupe::execution {

plan_run::plan_run(plan_run_options chosen, const program_lookup& programs, inbox& inputs, action_host& host)
    : options_(std::move(chosen)),
      graph_(running().num_stages, running().edges),
      lane_(running().lane_of(options_.device)),
      gradients_descend_(schedule::gradient_order_of(running()) == schedule::gradient_order::descending),
      averages_weights_(schedule::averages_weights(running())),
      inputs_(inputs),
      host_(host) {
  for (const auto& op : actions())
    if (!stages_.contains(op.stage)) stages_.emplace(op.stage, programs(op.stage));
}

program::stage_parameters& plan_run::parameters(int stage) const {
  if (auto* found = stages_.at(stage).parameters) return *found;
  throw std::logic_error("[plan_interpreter] expected a program with parameters for the training of stage " +
                         std::to_string(stage) + ", got one of passes only");
}

void plan_run::begin_step(std::uint64_t step) {
  step_ = step;
  position_ = 0;
}

std::uint64_t plan_run::optimizer_step(std::uint64_t step, int number) const {
  return step * static_cast<std::uint64_t>(running().flush_every) + static_cast<std::uint64_t>(number);
}

program::microbatch plan_run::microbatch_of(const action& op) const {
  auto count = running().microbatches_per_step();
  auto number = op.microbatch / count;
  bool shares_step = running().kind != schedule_kind::forward_only;  // with other replicas
  return {.step = optimizer_step(step_, number),
          .index = op.microbatch % count,
          .count = count,
          .training = options_.pass == pass_kind::train,
          .delay = number == 0 ? 0 : 1,
          .replica = shares_step ? replica() : 0,
          .num_replicas = shares_step ? running().mesh.num_replicas : 1,
          .gradients_descend = gradients_descend_};
}

batch_assignment plan_run::assignment_of(int replica) const {
  if (running().kind != schedule_kind::forward_only) return {};
  return {static_cast<std::uint64_t>(running().num_running_replicas()), static_cast<std::uint64_t>(replica)};
}

bool plan_run::is_run_by(int replica, std::uint64_t step) const {
  return options_.pass == pass_kind::train || assignment_of(replica).batch_of(step) < options_.num_batches;
}

tensor plan_run::rows_of(const tensor& samples, int microbatch) const {
  auto which = microbatch_of({0, action_kind::forward, microbatch});
  std::int64_t steps = running().flush_every;
  auto rows = samples.shape()[0] / (steps * which.global_count());
  auto before = microbatch / which.count * which.global_count() + which.global_index();
  return samples.rows(before * rows, rows);
}

tensor plan_run::averaged_rows_of(const tensor& samples, int microbatch) const {
  auto which = microbatch_of({0, action_kind::forward, microbatch});
  std::int64_t steps = running().flush_every;
  auto rows = samples.shape()[0] / (steps * which.global_count());
  auto before = microbatch / which.count * which.global_count();
  if (!averages_weights_) return samples.rows(before * rows, which.global_count() * rows);
  return samples.rows((before + which.replica * which.count) * rows, which.count * rows);
}

transport::tensor_tag plan_run::tag(transport::tensor_role role, int stage, int microbatch,
                                    std::size_t port) const {
  return tag_to(lane_, role, stage, microbatch, port);
}

transport::tensor_tag plan_run::tag_to(int lane, transport::tensor_role role, int stage, int microbatch,
                                       std::size_t port) const {
  const auto& mesh = running().mesh;
  return {options_.generation,
          step_,
          options_.call,
          static_cast<std::uint32_t>(stage),
          static_cast<std::uint32_t>(microbatch),
          role,
          static_cast<std::uint32_t>(port),
          static_cast<std::uint32_t>(mesh.replica_of(lane)),
          static_cast<std::uint32_t>(mesh.slice_of(lane))};
}

std::optional<std::vector<tensor>> plan_run::take(const std::vector<transport::tensor_tag>& tags) {
  if (!std::ranges::all_of(tags, [this](const transport::tensor_tag& each) { return inputs_.has(each); }))
    return {};
  std::vector<tensor> taken;
  for (const auto& each : tags) taken.push_back(*inputs_.take(each));
  return taken;
}

void plan_run::deliver(const transport::tensor_tag& tag, tensor value) {
  const auto& plan = running();
  auto lane = plan.mesh.lane_at(static_cast<int>(tag.replica), static_cast<int>(tag.slice));
  if (plan.job_device(lane, plan.device_of_stage[tag.stage]) == options_.device)
    inputs_.put(tag, std::move(value));
  else if (tag.role == transport::tensor_role::gradient && !value.defined())
    host_.send(tag, tensor::zeros({1}, dtype::u8));
  else
    host_.send(tag, std::move(value));
}

}  // namespace troupe::execution
