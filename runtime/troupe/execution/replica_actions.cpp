// plan_interpreter: what replicas do together, the Gs and the passes of joint stages.
#include <array>
#include <bit>
#include <stdexcept>
#include <utility>

#include "troupe/execution/plan_interpreter.hpp"

namespace troupe {
namespace {

/// i32 [6], which a G takes to all replicas as it is.
tensor metrics_message(const step_metrics& metrics) {
  using words = std::array<std::int32_t, 2>;
  std::vector<std::int32_t> message;
  for (auto number :
       {std::bit_cast<std::int64_t>(metrics.loss_sum), metrics.num_samples, metrics.num_correct})
    for (auto word : std::bit_cast<words>(number)) message.push_back(word);
  auto size = static_cast<std::int64_t>(message.size());
  return tensor::from(message, {size});
}

step_metrics metrics_in(const tensor& message) {
  auto words = message.values<std::int32_t>();
  if (words.size() != 6)
    throw std::logic_error("[plan_interpreter] expected a replica's metrics, i32[6], got " +
                           describe(message));
  auto number = [&words](std::size_t at) {
    return std::bit_cast<std::int64_t>(std::array{words[2 * at], words[2 * at + 1]});
  };
  return {std::bit_cast<double>(number(0)), number(1), number(2)};
}

}  // namespace

/// The G that follows `op`, the next action, in its stage; null: another action does.
const action* plan_interpreter::all_reduce_after(const action& op) const {
  const auto* next = contributes_to_[static_cast<std::size_t>(&op - actions().data())];
  return next && next->kind == action_kind::all_reduce ? next : nullptr;
}

stage_program::piece_callback plan_interpreter::giving_to(const action& all_reduce) {
  return [this, &all_reduce](int piece) { give_piece(all_reduce, piece); };
}

replica_exchange& plan_interpreter::exchange_of(const action& all_reduce) {
  auto [found, is_new] = exchanges_.try_emplace(all_reduce.stage);
  if (is_new)
    found->second = replica_exchange(
        replica_, options_.running.num_replicas,
        program(all_reduce.stage).num_gradient_pieces(optimizer_step(all_reduce.microbatch)) +
            (has_metrics(all_reduce) ? 1 : 0),
        tag(tensor_role::replica_gradients, all_reduce.stage, all_reduce.microbatch, 0));
  return found->second;
}

/// Whether a G has one piece more, the last one: the metrics since the last flush.
bool plan_interpreter::has_metrics(const action& all_reduce) const {
  return options_.shares_metrics && graph_.computes_loss(all_reduce.stage) &&
         all_reduce.microbatch + 1 == options_.running.flush_every;
}

void plan_interpreter::give_piece(const action& all_reduce, int piece) {
  auto& computes = program(all_reduce.stage);
  bool is_metrics = piece == computes.num_gradient_pieces(optimizer_step(all_reduce.microbatch));
  auto value = is_metrics ? metrics_message(host_.metrics()) : computes.replica_gradients(piece);
  if (!value.defined()) return;
  exchange_of(all_reduce).give(piece, value, [this](const tensor_tag& to, tensor sent) {
    deliver(to, std::move(sent));
  });
}

/// All that are there and were not given.
void plan_interpreter::give_pieces(const action& all_reduce) {
  for (int piece : exchange_of(all_reduce).not_given()) give_piece(all_reduce, piece);
}

/// Whatever is there is added up and taken, and pieces that depend on it are given; the action ends with the
/// last piece.
bool plan_interpreter::run_all_reduce(const action& op) {
  auto& exchange = exchange_of(op);
  bool has_nothing = exchange.is_done();
  if (has_nothing || exchange.can_go_on(inputs_)) {
    host_.on_begin(op);
    while (exchange.can_go_on(inputs_)) {
      exchange.go_on(
          inputs_, [this](const tensor_tag& to, tensor value) { deliver(to, std::move(value)); },
          [&](int piece, const std::vector<tensor>& sums) { take_piece(op, piece, sums); });
      give_pieces(op);
    }
    if (exchange.is_done()) host_.on_end(op);
  }
  if (!exchange.is_done()) return false;
  exchanges_.erase(op.stage);
  return true;
}

void plan_interpreter::take_piece(const action& all_reduce, int piece, const std::vector<tensor>& sums) {
  auto& computes = program(all_reduce.stage);
  if (piece < computes.num_gradient_pieces(optimizer_step(all_reduce.microbatch)))
    return computes.take_summed_gradients(piece, sums);
  std::vector<step_metrics> of_replicas;
  for (const auto& message : sums) of_replicas.push_back(metrics_in(message));
  host_.on_replica_metrics(of_replicas);
}

/// None unless all replicas run the action together.
std::optional<joint_pass> plan_interpreter::joint_pass_of(const action& op) {
  if (!options_.running.is_joint(op)) return {};
  return joint_pass(
      op, replica_, options_.running.num_running_replicas(), tag(tensor_role::replica_values, op.stage, 0, 0),
      num_joint_messages_[op.stage],
      [this](const tensor_tag& to, tensor value) { host_.send(to, std::move(value)); },
      [this, op](const tensor_tag& wanted) { return host_.wait_for(op, wanted); });
}

}  // namespace troupe
