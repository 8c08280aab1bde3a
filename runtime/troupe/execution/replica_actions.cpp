// plan_interpreter: what replicas do together, the Gs and the passes of synchronized stages.
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

/// What the others have given meanwhile is added up at once, so that it travels while this replica computes.
/// Sums are taken later: a weight is still used by the backward that computes its gradient.
stage_program::piece_callback plan_interpreter::giving_to(const action& all_reduce) {
  return [this, &all_reduce](int piece) {
    auto& to = all_reduce_of(all_reduce);
    give_piece(to, piece);
    host_.take_arrivals();
    to.exchange.add_up(inputs_, delivering());
  };
}

plan_interpreter::running_all_reduce& plan_interpreter::all_reduce_of(const action& op) {
  auto [found, is_new] = all_reduces_.try_emplace(op.stage);
  auto& running = found->second;
  if (!is_new) return running;
  auto num_pieces = program(op.stage).num_gradient_pieces(optimizer_step(step_, op.microbatch));
  running = {&op, step_, num_pieces,
             replica_exchange(replica_, options_.running.num_replicas, num_pieces + (has_metrics(op) ? 1 : 0),
                              tag(tensor_role::replica_gradients, op.stage, op.microbatch, 0),
                              [this, stage = op.stage](int piece, std::int64_t num_elements, dtype type) {
                                return host_.sum_memory(stage, piece, num_elements, type);
                              })};
  return running;
}

/// Whether a G has one piece more, the last one: the metrics since the last flush.
bool plan_interpreter::has_metrics(const action& all_reduce) const {
  return options_.shares_metrics && graph_.computes_loss(all_reduce.stage) &&
         all_reduce.microbatch + 1 == options_.running.flush_every;
}

void plan_interpreter::give_piece(running_all_reduce& to, int piece) {
  auto value = piece == to.num_gradient_pieces ? metrics_message(host_.metrics())
                                               : program(to.op->stage).replica_gradients(piece);
  if (value.defined()) to.exchange.give(piece, value, delivering());
}

/// All that are there and were not given.
void plan_interpreter::give_pieces(running_all_reduce& to) {
  for (int piece : to.exchange.not_given()) give_piece(to, piece);
}

replica_exchange::sender plan_interpreter::delivering() {
  return [this](const tensor_tag& to, tensor value) { deliver(to, std::move(value)); };
}

bool plan_interpreter::run_all_reduce(const action& op) {
  auto& running = all_reduce_of(op);
  bool has_nothing = running.exchange.is_done();
  if (has_nothing || running.exchange.can_go_on(inputs_)) {
    host_.on_begin(op);
    go_on(running);
    if (running.exchange.is_done()) host_.on_end(op);
  }
  if (!running.exchange.is_done()) return defer(op);
  all_reduces_.erase(op.stage);
  return true;
}

/// Whatever is there is added up and taken, and pieces that depend on it are given.
void plan_interpreter::go_on(running_all_reduce& with) {
  while (with.exchange.can_go_on(inputs_)) {
    with.exchange.go_on(inputs_, delivering(),
                        [&](int piece, const std::vector<tensor>& sums) { take_piece(with, piece, sums); });
    give_pieces(with);
  }
}

void plan_interpreter::take_piece(const running_all_reduce& of, int piece, const std::vector<tensor>& sums) {
  if (piece < of.num_gradient_pieces) return program(of.op->stage).take_summed_gradients(piece, sums);
  std::vector<step_metrics> of_replicas;
  for (const auto& message : sums) of_replicas.push_back(metrics_in(message));
  host_.on_replica_metrics(of_replicas);
}

/// None unless all replicas run the action together.
std::optional<synchronized_pass> plan_interpreter::synchronized_pass_of(const action& op) {
  if (!options_.running.is_synchronized(op)) return {};
  return synchronized_pass(
      op, replica_, options_.running.num_running_replicas(), tag(tensor_role::replica_values, op.stage, 0, 0),
      num_pass_messages_[op.stage],
      [this](const tensor_tag& to, tensor value) { host_.send(to, std::move(value)); },
      [this, op](const tensor_tag& wanted) { return receive_within(op, wanted); });
}

/// Others may wait for this replica's part of a deferred update before they send what is wanted.
tensor plan_interpreter::receive_within(const action& op, const tensor_tag& wanted) {
  host_.take_arrivals();
  for (;;) {
    progress_deferred_updates();
    if (is_halted_) throw action_interrupted();
    if (auto found = inputs_.take(wanted)) return std::move(*found);
    host_.wait_within(op, {step_, static_cast<std::uint32_t>(position_)});
  }
}

}  // namespace troupe
