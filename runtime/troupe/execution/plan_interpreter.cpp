#include "troupe/execution/plan_interpreter.hpp"

#include <algorithm>
#include <list>
#include <stdexcept>
#include <string>
#include <utility>

namespace troupe::execution {
namespace {

/// [position] the next action of the same stage but U and S, if it is one that stages or lanes do together.
std::vector<const action*> reductions_after(const std::vector<action>& actions) {
  std::vector<const action*> after(actions.size(), nullptr);
  std::map<int, const action*> next_of_stage;
  for (std::size_t position = actions.size(); position-- > 0;) {
    if (is_of_storage(actions[position].kind)) continue;
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
      gathers_(run_),
      contributes_to_(reductions_after(run_.actions())) {}

void plan_interpreter::begin_step(std::uint64_t step) {
  run_.begin_step(step);
  edges_.begin_step();
  updates_.begin_step();
  gathers_.begin_step();
  num_pass_messages_.clear();
}

/// Other lanes run it, and need the weights that this one owns.
void plan_interpreter::skip_step() {
  for (const auto& op : run_.actions())
    if (op.kind == action_kind::unshard) gathers_.send_only(op);
  run_.pass_step();
}

bool plan_interpreter::run_next() {
  updates_.progress_deferred();
  gathers_.progress();
  if (is_halted() || is_at_end()) return false;
  updates_.add_up_before(run_.next());
  if (!run(run_.next())) return false;
  const auto* contributes_to = contributes_to_[run_.position()];
  run_.pass_action();
  if (contributes_to) contribute(*contributes_to);
  return true;
}

bool plan_interpreter::run(const action& op) {
  if (updates_.deferred_before(op) || !gathers_.may_run(op)) return false;
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
      gathers_.mark_stale(op.stage);
      return updates_.run_apply(op);
    case action_kind::all_reduce:
      return updates_.run_all_reduce(op);
    case action_kind::unshard:
      gathers_.begin(op);
      return true;
    case action_kind::reshard:
      gathers_.end(op);
      return true;
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
  std::vector<tensor> outputs;
  run_jointly(op, [&](program::microbatch which) {
    if (targets.defined() && which.training)
      which.batch_targets = run_.averaged_rows_of(samples->targets, op.microbatch);
    outputs = run_.compute(op.stage).forward(which, std::move(*inputs), std::move(targets));
  });
  edges_.send_outputs(op, outputs);
  return true;
}

bool plan_interpreter::run_backward(const action& op) {
  auto gradients = edges_.take_output_gradients(op);
  if (!gradients) return false;
  auto& computes = run_.compute(op.stage);
  run_jointly(op, [&](const program::microbatch& which) {
    auto output_gradients = edges_.sums_by_port(op.stage, std::move(*gradients));
    // Sent first, so that the stages before continue while this one computes its weight gradients.
    auto send = [this, &op](const std::vector<tensor>& inputs) { edges_.send_input_gradients(op, inputs); };
    if (const auto* next = sum_after(op); next && op.kind == action_kind::backward) {
      computes.backward_last(which, std::move(output_gradients), send, updates_.giving_to(*next));
    } else {
      send(computes.backward_input(which, std::move(output_gradients)));
      if (op.kind == action_kind::backward) computes.backward_weight(which);
    }
  });
  return true;
}

/// Runs an action whose inputs are there, with the sums over the lanes that run it together.
template <class Pass>
void plan_interpreter::run_jointly(const action& op, Pass pass) {
  run_.host().on_begin(op);
  auto which = run_.microbatch_of(op);
  std::list<joint_pass> joint;
  for (auto axis : running().joint_axes(op))
    (axis == layout::mesh_axis::dp ? which.sums : which.slice_sums) =
        &joint.emplace_back(joint_pass_of(op, axis));
  pass(which);
  for (auto& each : joint) each.end();
  run_.host().on_end(op);
}

/// The G over dp that follows `op`, the next action, in its stage, and gets its buckets within `op`; null:
/// another action follows.
const action* plan_interpreter::sum_after(const action& op) const {
  const auto* next = contributes_to_[run_.index_of(op)];
  bool is_sum = next && next->kind == action_kind::all_reduce && next->axis == layout::mesh_axis::dp;
  return is_sum ? next : nullptr;
}

bool plan_interpreter::run_weight_gradient(const action& op) {
  run_jointly(op, [&](const program::microbatch& which) {
    if (const auto* next = sum_after(op))
      run_.compute(op.stage).backward_last_weight(which, updates_.giving_to(*next));
    else
      run_.compute(op.stage).backward_weight(which);
  });
  return true;
}

bool plan_interpreter::run_reduction(const action& op) {
  std::vector<transport::tensor_tag> tags;
  auto num_members = members_of(op).size();
  for (std::size_t from = 0; from < num_members; ++from)
    tags.push_back(run_.tag(transport::tensor_role::reduction_partial, op.stage, op.microbatch, from));
  auto partials = run_.take(tags);
  if (!partials) return false;
  run_.host().on_begin(op);
  run_.parameters(op.stage).reduce(reduction_of_step(op.microbatch), *partials);
  run_.host().on_end(op);
  return true;
}

/// To all that take part, this one included.
void plan_interpreter::contribute(const action& next) {
  if (next.kind == action_kind::all_reduce) return updates_.give_buckets(next);
  auto partial = run_.parameters(next.stage).partial_for_reduction(reduction_of_step(next.microbatch));
  auto members = members_of(next);
  auto own = std::ranges::find(members, reduction_member{run_.lane(), next.stage});
  auto number = static_cast<std::size_t>(own - members.begin());
  for (const auto& [lane, stage] : members)
    run_.deliver(run_.tag_to(lane, transport::tensor_role::reduction_partial, stage, next.microbatch, number),
                 partial);
}

/// Lane by lane, as their partials are numbered.
std::vector<plan_interpreter::reduction_member> plan_interpreter::members_of(const action& op) const {
  std::vector<reduction_member> members;
  for (int lane : running().lanes_together(op, run_.lane()))
    for (int stage : running().reductions[static_cast<std::size_t>(op.microbatch)].stages)
      members.push_back({lane, stage});
  return members;
}

joint_pass plan_interpreter::joint_pass_of(const action& op, layout::mesh_axis axis) {
  auto tag = run_.tag(transport::tensor_role::replica_values, op.stage, 0, 0);
  tag.axis = axis;
  const auto& mesh = running().mesh;
  return joint_pass(
      op, mesh.index_along(axis, run_.lane()), mesh.size_of(axis), tag, num_pass_messages_[{op.stage, axis}],
      [this](const transport::tensor_tag& to, tensor value) { run_.host().send(to, std::move(value)); },
      [this, op](const transport::tensor_tag& wanted) { return receive_within(op, wanted); });
}

/// Others may wait for this lane's part of a deferred update before they send what is wanted.
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
