#include "troupe/execution/plan_interpreter.hpp"

#include <stdexcept>
#include <string>
#include <utility>

namespace troupe::execution {
namespace {

/// [position] the next action of the same stage, if it is one that stages or replicas do together.
std::vector<const action*> reductions_after(const std::vector<action>& actions) {
  std::vector<const action*> after(actions.size(), nullptr);
  std::map<int, const action*> next_of_stage;
  for (std::size_t position = actions.size(); position-- > 0;) {
    auto& next = next_of_stage[actions[position].stage];
    if (next && (next->kind == action_kind::reduce_gradient || next->kind == action_kind::all_reduce))
      after[position] = next;
    next = &actions[position];
  }
  return after;
}

}  // namespace

plan_interpreter::plan_interpreter(options chosen, const program_lookup& programs, inbox& inputs,
                                   action_host& host)
    : run_(std::move(chosen), programs, inputs, host),
      edges_(run_),
      updates_(run_),
      contributes_to_(reductions_after(run_.actions())) {}

void plan_interpreter::begin_step(std::uint64_t step) {
  run_.begin_step(step);
  edges_.begin_step();
  updates_.begin_step();
  num_pass_messages_.clear();
}

bool plan_interpreter::run_next() {
  updates_.progress_deferred();
  if (is_halted() || is_at_end() || !run(run_.next())) return false;
  const auto* contributes_to = contributes_to_[run_.position()];
  run_.pass_action();
  if (contributes_to) contribute(*contributes_to);
  return true;
}

bool plan_interpreter::run(const action& op) {
  if (updates_.deferred_before(op)) return false;
  switch (op.kind) {
    case action_kind::forward:
      return run_forward(op);
    case action_kind::backward:
    case action_kind::input_gradient:
      return run_backward(op);
    case action_kind::weight_gradient:
      return run_weight_gradient(op);
    case action_kind::reduce_gradient:
      return run_reduction(op);
    case action_kind::apply:
      return updates_.run_apply(op);
    case action_kind::all_reduce:
      return updates_.run_all_reduce(op);
  }
  throw std::logic_error("[plan_interpreter] expected a kind of action, got " +
                         std::to_string(static_cast<int>(op.kind)));
}

bool plan_interpreter::takes_targets(int stage) const {
  return run_.graph().computes_loss(stage) && run_.options().pass != pass_kind::predict;
}

bool plan_interpreter::needs_samples() const {
  if (is_at_end()) return false;
  const auto& op = run_.next();
  bool uses_them = run_.graph().takes_samples(op.stage) || takes_targets(op.stage);
  return op.kind == action_kind::forward && uses_them && run_.host().samples() == nullptr;
}

bool plan_interpreter::run_forward(const action& op) {
  if (needs_samples()) return false;
  auto inputs = edges_.take_activations(op);
  if (!inputs) return false;
  const auto* samples = run_.host().samples();
  if (run_.graph().takes_samples(op.stage)) inputs->push_back(run_.rows_of(samples->inputs, op.microbatch));
  auto targets = takes_targets(op.stage) ? run_.rows_of(samples->targets, op.microbatch) : tensor();
  run_.host().on_begin(op);
  auto pass = synchronized_pass_of(op);
  auto which = run_.microbatch_of(op);
  which.sums = pass ? &*pass : nullptr;
  if (targets.defined() && which.training)
    which.batch_targets = run_.averaged_rows_of(samples->targets, op.microbatch);
  auto outputs = run_.program(op.stage).forward(which, std::move(*inputs), std::move(targets));
  if (pass) pass->end();
  run_.host().on_end(op);
  edges_.send_outputs(op, outputs);
  return true;
}

bool plan_interpreter::run_backward(const action& op) {
  auto gradients = edges_.take_output_gradients(op);
  if (!gradients) return false;
  run_.host().on_begin(op);
  auto pass = synchronized_pass_of(op);
  auto which = run_.microbatch_of(op);
  which.sums = pass ? &*pass : nullptr;
  auto& computes = run_.program(op.stage);
  auto output_gradients = edges_.sums_by_port(op.stage, std::move(*gradients));
  // Sent first, so that the stages before continue while this one computes its weight gradients.
  auto send = [this, &op](const std::vector<tensor>& inputs) { edges_.send_input_gradients(op, inputs); };
  if (const auto* next = all_reduce_after(op); next && op.kind == action_kind::backward) {
    computes.backward_last(which, std::move(output_gradients), send, updates_.giving_to(*next));
  } else {
    send(computes.backward_input(which, std::move(output_gradients)));
    if (op.kind == action_kind::backward) computes.backward_weight(which);
  }
  if (pass) pass->end();
  run_.host().on_end(op);
  return true;
}

/// The G that follows `op`, the next action, in its stage; null: another action does.
const action* plan_interpreter::all_reduce_after(const action& op) const {
  const auto* next = contributes_to_[run_.index_of(op)];
  return next && next->kind == action_kind::all_reduce ? next : nullptr;
}

bool plan_interpreter::run_weight_gradient(const action& op) {
  run_.host().on_begin(op);
  if (const auto* next = all_reduce_after(op))
    run_.program(op.stage).backward_last_weight(run_.microbatch_of(op), updates_.giving_to(*next));
  else
    run_.program(op.stage).backward_weight(run_.microbatch_of(op));
  run_.host().on_end(op);
  return true;
}

bool plan_interpreter::run_reduction(const action& op) {
  std::vector<transport::tensor_tag> tags;
  for (int from : running().reductions[static_cast<std::size_t>(op.microbatch)])
    tags.push_back(run_.tag(transport::tensor_role::reduction_partial, op.stage, op.microbatch,
                            static_cast<std::size_t>(from)));
  auto partials = run_.take(tags);
  if (!partials) return false;
  run_.host().on_begin(op);
  run_.program(op.stage).reduce(reduction_of_step(op.microbatch), *partials);
  run_.host().on_end(op);
  return true;
}

/// To all that take part, this one included.
void plan_interpreter::contribute(const action& next) {
  if (next.kind == action_kind::all_reduce) return updates_.give_buckets(next);
  auto partial = run_.program(next.stage).partial_for_reduction(reduction_of_step(next.microbatch));
  for (int to : running().reductions[static_cast<std::size_t>(next.microbatch)])
    run_.deliver(run_.tag(transport::tensor_role::reduction_partial, to, next.microbatch,
                          static_cast<std::size_t>(next.stage)),
                 partial);
}

/// None unless all replicas run the action together.
std::optional<synchronized_pass> plan_interpreter::synchronized_pass_of(const action& op) {
  if (!running().is_synchronized(op)) return {};
  return synchronized_pass(
      op, run_.replica(), running().num_running_replicas(),
      run_.tag(transport::tensor_role::replica_values, op.stage, 0, 0), num_pass_messages_[op.stage],
      [this](const transport::tensor_tag& to, tensor value) { run_.host().send(to, std::move(value)); },
      [this, op](const transport::tensor_tag& wanted) { return receive_within(op, wanted); });
}

/// Others may wait for this replica's part of a deferred update before they send what is wanted.
tensor plan_interpreter::receive_within(const action& op, const transport::tensor_tag& wanted) {
  run_.host().take_arrivals();
  for (;;) {
    updates_.progress_deferred();
    if (is_halted()) throw program::action_interrupted();
    if (auto found = run_.inputs().take(wanted)) return std::move(*found);
    run_.host().wait_within(op, run_.next_position());
  }
}

plan_position plan_interpreter::waits_at() const {
  const auto* update = is_at_end() ? nullptr : updates_.deferred_before(run_.next());
  return update ? update->position() : run_.next_position();
}

}  // namespace troupe::execution
