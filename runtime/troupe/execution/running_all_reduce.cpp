#include "troupe/execution/running_all_reduce.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <stdexcept>
#include <utility>

#include "troupe/execution/replicas/direct_exchange.hpp"
#include "troupe/execution/replicas/follower_exchange.hpp"
#include "troupe/execution/replicas/group_exchange.hpp"

namespace troupe::execution {
namespace {

/// i32 [6], which a G takes to all replicas as it is.
tensor metrics_message(const program::step_metrics& metrics) {
  using words = std::array<std::int32_t, 2>;
  std::vector<std::int32_t> message;
  for (auto number :
       {std::bit_cast<std::int64_t>(metrics.loss_sum), metrics.num_samples, metrics.num_correct})
    for (auto word : std::bit_cast<words>(number)) message.push_back(word);
  auto size = static_cast<std::int64_t>(message.size());
  return tensor::from(message, {size});
}

program::step_metrics metrics_in(const tensor& message) {
  auto words = message.values<std::int32_t>();
  if (words.size() != 6)
    throw std::logic_error("[plan_interpreter] expected a replica's metrics, i32[6], got " +
                           describe(message));
  auto number = [&words](std::size_t index) {
    return std::bit_cast<std::int64_t>(std::array{words[2 * index], words[2 * index + 1]});
  };
  return {std::bit_cast<double>(number(0)), number(1), number(2)};
}

}  // namespace

running_all_reduce::running_all_reduce(plan_run& run, const action& op)
    : run_(run),
      op_(op),
      step_(run.step()),
      num_buckets_(run.parameters(op.stage).num_buckets(op.axis, run.optimizer_step(step_, op.microbatch))),
      exchange_(make_exchange()) {}

/// Slices exchange by messages, into new memory.
std::unique_ptr<replica_exchange> running_all_reduce::make_exchange() {
  auto stage = op_.stage;
  auto num_buckets = num_buckets_ + (has_metrics() ? 1 : 0);
  auto tag = run_.tag(transport::tensor_role::replica_gradients, stage, op_.microbatch, 0);
  tag.axis = op_.axis;
  const auto& mesh = run_.running().mesh;
  auto index = mesh.index_along(op_.axis, run_.lane());
  replica_messages messages(
      index, mesh.size_of(op_.axis), tag, run_.inputs(),
      [&run = run_](const transport::tensor_tag& to, tensor value) { run.deliver(to, std::move(value)); });
  if (!is_over_replicas())
    return std::make_unique<direct_exchange>(
        std::move(messages), num_buckets,
        [](int, std::int64_t num_elements, dtype type) { return tensor::empty({num_elements}, type); });
  auto memory = [&host = run_.host(), stage](int bucket, std::int64_t num_elements, dtype type) {
    return host.sum_memory(stage, bucket, num_elements, type);
  };
  const auto* group = run_.host().group_of(stage);
  if (!group)
    return std::make_unique<direct_exchange>(
        std::move(messages), num_buckets, memory,
        direct_exchange::ownership{
            [this](int bucket) { return owner_of(bucket); },
            [this](int bucket) { run_.parameters(op_.stage).note_read(op_.axis, bucket); }});
  auto leader = group->replicas_with(index).front();
  if (leader != index) return std::make_unique<follower_exchange>(std::move(messages), num_buckets, leader);
  return std::make_unique<group_exchange>(
      std::move(messages), num_buckets, *group, memory,
      [&host = run_.host()](const std::exception& cause) { host.on_group_failure(cause); });
}

plan_position running_all_reduce::position() const {
  return {step_, static_cast<std::uint32_t>(run_.index_of(op_))};
}

/// Whether there is one bucket more, the last one: the metrics since the last flush.
bool running_all_reduce::has_metrics() const {
  return is_over_replicas() && run_.options().shares_metrics && run_.graph().computes_loss(op_.stage) &&
         op_.microbatch + 1 == run_.running().flush_every;
}

void running_all_reduce::give_bucket(int bucket) {
  auto value = value_of(bucket);
  if (!value.defined()) return;
  if (value.device().type == device::kind::cpu) return exchange_->give(bucket, value);
  coming_.push_back({bucket, async_host_copy(std::move(value))});
  give_copied(false);
}

/// Those that the GPU has computed, or all.
void running_all_reduce::give_copied(bool waits) {
  while (!coming_.empty() && (waits || coming_.front().value.is_ready())) {
    auto next = std::move(coming_.front());
    coming_.pop_front();
    exchange_->give(next.number, next.value.take());
  }
}

void running_all_reduce::add_up() {
  give_copied(false);
  exchange_->add_up();
}

std::optional<int> running_all_reduce::owner_of(int bucket) {
  if (bucket == num_buckets_) return {};
  return run_.parameters(op_.stage).owner_of(op_.axis, bucket);
}

tensor running_all_reduce::value_of(int bucket) {
  if (bucket == num_buckets_) return metrics_message(run_.host().metrics());
  return run_.parameters(op_.stage).bucket(op_.axis, bucket);
}

void running_all_reduce::give_buckets() {
  for (int bucket : exchange_->not_given())
    if (std::ranges::find(coming_, bucket, &copied_bucket::number) == coming_.end()) give_bucket(bucket);
}

void running_all_reduce::go_on() {
  while (can_go_on()) {
    exchange_->go_on([this](int bucket, const std::vector<tensor>& sums) { take_bucket(bucket, sums); });
    give_buckets();
    finish_copies();
  }
}

void running_all_reduce::take_bucket(int bucket, const std::vector<tensor>& sums) {
  if (bucket < num_buckets_) {
    if (is_over_replicas()) run_.host().before_update(op_);
    return run_.parameters(op_.stage).take_sums(op_.axis, bucket, sums);
  }
  std::vector<program::step_metrics> of_replicas;
  for (const auto& message : sums) of_replicas.push_back(metrics_in(message));
  run_.host().on_replica_metrics(of_replicas);
}

}  // namespace troupe::execution
