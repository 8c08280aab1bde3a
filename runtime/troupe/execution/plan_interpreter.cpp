#include "troupe/execution/plan_interpreter.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "troupe/ops/elementwise.hpp"
#include "troupe/schedule/gradient_order.hpp"
#include "troupe/tensor/memory_account.hpp"

namespace troupe {
namespace {

void check_count(const char* what, int stage, std::size_t got, std::size_t expected, const char* ports) {
  if (got == expected) return;
  throw std::logic_error("[stage_program] expected " + std::to_string(expected) + " " + what + " of stage " +
                         std::to_string(stage) + ", one for each " + ports + ", got " + std::to_string(got));
}

/// Travels to another device in place of a gradient that is undefined, since what travels has elements. No
/// gradient has this dtype: values of dtypes that are not floating have none.
tensor in_place_of_gradient() { return tensor::zeros({1}, dtype::u8); }
bool is_in_place_of_gradient(const tensor& value) { return value.defined() && value.dtype() == dtype::u8; }

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

void action_host::wait_within(const action& op, const plan_position&) {
  throw std::logic_error("[action_host] expected a host that waits within actions, for " + to_string(op));
}

plan_interpreter::plan_interpreter(options chosen, const program_lookup& programs, inbox& inputs,
                                   action_host& host)
    : options_(std::move(chosen)),
      graph_(options_.running.num_stages, options_.running.edges),
      replica_(options_.running.replica_of(options_.device)),
      gradients_descend_(gradient_order_of(options_.running) == gradient_order::descending),
      contributes_to_(reductions_after(actions())),
      inputs_(inputs),
      host_(host) {
  for (const auto& op : actions())
    if (!programs_.contains(op.stage)) programs_.emplace(op.stage, &programs(op.stage));
}

const std::vector<action>& plan_interpreter::actions() const {
  return options_.running.actions_of(options_.device);
}

void plan_interpreter::begin_step(std::uint64_t step) {
  step_ = step;
  position_ = 0;
  forms_.begin_step();
  all_reduces_.clear();
  num_pass_messages_.clear();
}

bool plan_interpreter::run_next() {
  progress_deferred_updates();
  if (is_halted_ || is_at_end() || !run(actions()[position_])) return false;
  auto done = position_++;
  if (const auto* next = contributes_to_[done]) contribute(*next);
  return true;
}

bool plan_interpreter::run(const action& op) {
  if (update_before(op)) return false;
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
      return run_apply(op);
    case action_kind::all_reduce:
      return run_all_reduce(op);
  }
  throw std::logic_error("[plan_interpreter] expected a kind of action, got " +
                         std::to_string(static_cast<int>(op.kind)));
}

bool plan_interpreter::takes_targets(int stage) const {
  return graph_.computes_loss(stage) && options_.pass != pass_kind::predict;
}

bool plan_interpreter::needs_samples() const {
  if (is_at_end()) return false;
  const auto& op = actions()[position_];
  bool uses_them = graph_.takes_samples(op.stage) || takes_targets(op.stage);
  return op.kind == action_kind::forward && uses_them && host_.samples() == nullptr;
}

bool plan_interpreter::run_forward(const action& op) {
  if (needs_samples()) return false;
  auto inputs = take_activations(op);
  if (!inputs) return false;
  if (graph_.takes_samples(op.stage)) inputs->push_back(rows_of(host_.samples()->inputs, op.microbatch));
  auto targets = takes_targets(op.stage) ? rows_of(host_.samples()->targets, op.microbatch) : tensor();
  host_.on_begin(op);
  auto pass = synchronized_pass_of(op);
  auto which = microbatch_of(op);
  which.sums = pass ? &*pass : nullptr;
  if (targets.defined() && which.training)
    which.batch_targets = averaged_rows_of(host_.samples()->targets, op.microbatch);
  auto outputs = program(op.stage).forward(which, std::move(*inputs), std::move(targets));
  if (pass) pass->end();
  host_.on_end(op);
  send_outputs(op, outputs);
  return true;
}

/// All input tensors, by port, or none if one is missing.
std::optional<std::vector<tensor>> plan_interpreter::take_activations(const action& op) {
  auto edges = graph_.inputs_of(op.stage);
  std::vector<tensor_tag> tags;
  for (const auto& each : edges)
    if (is_sent(each))
      tags.push_back(
          tag(tensor_role::activation, op.stage, op.microbatch, static_cast<std::size_t>(each.input)));
  auto taken = take(tags);
  if (!taken) return {};
  std::vector<tensor> inputs;
  auto next = taken->begin();
  for (const auto& each : edges) {
    inputs.push_back(is_sent(each) ? *next++ : inputs[first_port(each)]);
    forms_.agree_on(each, inputs.back(), op.microbatch);
    charge_here(inputs.back(), memory_use::activations);
  }
  return inputs;
}

/// The lowest input port of the receiver that gets the same tensor.
std::size_t plan_interpreter::first_port(const edge& passed) const {
  auto is_same = [&passed](const edge& other) {
    return other.from == passed.from && other.output == passed.output;
  };
  auto edges = graph_.inputs_of(passed.to);
  return static_cast<std::size_t>(std::ranges::find_if(edges, is_same) - edges.begin());
}

void plan_interpreter::send_outputs(const action& op, const std::vector<tensor>& outputs) {
  if (graph_.computes_loss(op.stage)) {
    bool predicts = options_.pass == pass_kind::predict;
    check_count("outputs", op.stage, outputs.size(), predicts ? 1 : 0, "prediction");
    if (predicts) host_.on_prediction(op, outputs.front());
    return;
  }
  check_count("outputs", op.stage, outputs.size(),
              static_cast<std::size_t>(graph_.num_output_ports(op.stage)), "output port");
  for (const auto& each : graph_.outputs_of(op.stage)) {
    const auto& sent = outputs[static_cast<std::size_t>(each.output)];
    forms_.agree_on(each, sent, op.microbatch);
    if (is_sent(each))
      deliver(tag(tensor_role::activation, each.to, op.microbatch, static_cast<std::size_t>(each.input)),
              sent);
  }
}

bool plan_interpreter::run_backward(const action& op) {
  std::vector<tensor_tag> tags;
  for (std::size_t index = 0; index < graph_.outputs_of(op.stage).size(); ++index)
    tags.push_back(tag(tensor_role::gradient, op.stage, op.microbatch, index));
  auto gradients = take(tags);
  if (!gradients) return false;
  for (auto& each : *gradients)
    if (is_in_place_of_gradient(each)) each = {};
  host_.on_begin(op);
  auto pass = synchronized_pass_of(op);
  auto which = microbatch_of(op);
  which.sums = pass ? &*pass : nullptr;
  auto& computes = program(op.stage);
  auto output_gradients = sums_by_port(op.stage, std::move(*gradients));
  // Sent first, so that the stages before continue while this one computes its weight gradients.
  auto send = [this, &op](const std::vector<tensor>& inputs) { send_input_gradients(op, inputs); };
  if (const auto* next = all_reduce_after(op); next && op.kind == action_kind::backward) {
    computes.backward_last(which, std::move(output_gradients), send, giving_to(*next));
  } else {
    send(computes.backward_input(which, std::move(output_gradients)));
    if (op.kind == action_kind::backward) computes.backward_weight(which);
  }
  if (pass) pass->end();
  host_.on_end(op);
  return true;
}

/// The gradient of an output that went to several ports is the sum of theirs, from the last edge to the
/// first.
std::vector<tensor> plan_interpreter::sums_by_port(int stage, std::vector<tensor> gradients) const {
  auto edges = graph_.outputs_of(stage);
  std::vector<tensor> sums(static_cast<std::size_t>(graph_.num_output_ports(stage)));
  for (auto index = edges.size(); index-- > 0;) {
    auto& sum = sums[static_cast<std::size_t>(edges[index].output)];
    if (!sum.defined())
      sum = std::move(gradients[index]);
    else if (gradients[index].defined())
      sum = add(sum, gradients[index]);
  }
  return sums;
}

void plan_interpreter::send_input_gradients(const action& op, const std::vector<tensor>& gradients) {
  auto edges = graph_.inputs_of(op.stage);
  check_count("input gradients", op.stage, gradients.size(), edges.size(), "input port");
  for (std::size_t port = 0; port < edges.size(); ++port) {
    forms_.require_form(edges[port], gradients[port], op.microbatch);
    auto sender_edges = graph_.outputs_of(edges[port].from);
    auto index = std::ranges::find(sender_edges, edges[port]) - sender_edges.begin();
    deliver(tag(tensor_role::gradient, edges[port].from, op.microbatch, static_cast<std::size_t>(index)),
            gradients[port]);
  }
}

bool plan_interpreter::run_weight_gradient(const action& op) {
  host_.on_begin(op);
  if (const auto* next = all_reduce_after(op))
    program(op.stage).backward_last_weight(microbatch_of(op), giving_to(*next));
  else
    program(op.stage).backward_weight(microbatch_of(op));
  host_.on_end(op);
  return true;
}

bool plan_interpreter::run_reduction(const action& op) {
  std::vector<tensor_tag> tags;
  for (int from : options_.running.reductions[static_cast<std::size_t>(op.microbatch)])
    tags.push_back(tag(tensor_role::contribution, op.stage, op.microbatch, static_cast<std::size_t>(from)));
  auto contributions = take(tags);
  if (!contributions) return false;
  host_.on_begin(op);
  program(op.stage).reduce(reduction_of_step(op.microbatch), *contributions);
  host_.on_end(op);
  return true;
}

/// To all that take part, this one included.
void plan_interpreter::contribute(const action& next) {
  if (next.kind == action_kind::all_reduce) return give_pieces(all_reduce_of(next));
  auto contribution = program(next.stage).contribution_to(reduction_of_step(next.microbatch));
  for (int to : options_.running.reductions[static_cast<std::size_t>(next.microbatch)])
    deliver(tag(tensor_role::contribution, to, next.microbatch, static_cast<std::size_t>(next.stage)),
            contribution);
}

bool plan_interpreter::run_apply(const action& op) {
  if (deferred_.contains(op.stage)) return true;
  if (halts_before(op)) return false;
  host_.on_begin(op);
  program(op.stage).apply(optimizer_step(step_, op.microbatch));
  host_.on_end(op);
  return true;
}

/// Whether the A is not run since something is infinite or NaN.
bool plan_interpreter::halts_before(const action& op) {
  auto what = host_.non_finite_elsewhere(op);
  if (what.empty()) what = program(op.stage).non_finite();
  is_halted_ = !what.empty() && !host_.on_non_finite(op, what);
  return is_halted_;
}

/// All of them, or none if one is missing.
std::optional<std::vector<tensor>> plan_interpreter::take(const std::vector<tensor_tag>& tags) {
  if (!std::ranges::all_of(tags, [this](const tensor_tag& each) { return inputs_.has(each); })) return {};
  std::vector<tensor> taken;
  for (const auto& each : tags) taken.push_back(*inputs_.take(each));
  return taken;
}

void plan_interpreter::deliver(const tensor_tag& tag, tensor value) {
  const auto& plan = options_.running;
  if (plan.job_device(static_cast<int>(tag.replica), plan.device_of_stage[tag.stage]) == options_.device)
    inputs_.put(tag, std::move(value));
  else if (tag.role == tensor_role::gradient && !value.defined())
    host_.send(tag, in_place_of_gradient());
  else
    host_.send(tag, std::move(value));
}

tensor_tag plan_interpreter::tag(tensor_role role, int stage, int microbatch, std::size_t port) const {
  return {options_.generation,
          step_,
          options_.call,
          static_cast<std::uint32_t>(stage),
          static_cast<std::uint32_t>(microbatch),
          role,
          static_cast<std::uint32_t>(port),
          static_cast<std::uint32_t>(replica_)};
}

microbatch plan_interpreter::microbatch_of(const action& op) const {
  auto count = options_.running.microbatches_per_step();
  auto number = op.microbatch / count;
  return {.step = optimizer_step(step_, number),
          .index = op.microbatch % count,
          .count = count,
          .training = options_.pass == pass_kind::train,
          .delay = number == 0 ? 0 : 1,
          .replica = replica_,
          .num_replicas = options_.running.num_running_replicas(),
          .gradients_descend = gradients_descend_};
}

/// Of number `number` since the last flush, in a step of the plan.
std::uint64_t plan_interpreter::optimizer_step(std::uint64_t step, int number) const {
  return step * static_cast<std::uint64_t>(options_.running.flush_every) + static_cast<std::uint64_t>(number);
}

/// The rows of a microbatch in the samples of a step, which are those of each optimizer step's replicas one
/// after the other.
tensor plan_interpreter::rows_of(const tensor& samples, int microbatch) const {
  auto which = microbatch_of({0, action_kind::forward, microbatch});
  std::int64_t steps = options_.running.flush_every;
  auto rows = samples.shape()[0] / (steps * which.global_count());
  auto before = microbatch / which.count * which.global_count() + which.global_index();
  return samples.rows(before * rows, rows);
}

/// The rows of all microbatches over which the optimizer step of this one averages.
tensor plan_interpreter::averaged_rows_of(const tensor& samples, int microbatch) const {
  auto which = microbatch_of({0, action_kind::forward, microbatch});
  std::int64_t steps = options_.running.flush_every;
  auto rows = samples.shape()[0] / (steps * which.global_count());
  auto before = microbatch / which.count * which.global_count();
  if (!options_.running.averages_weights) return samples.rows(before * rows, which.global_count() * rows);
  return samples.rows((before + which.replica * which.count) * rows, which.count * rows);
}

}  // namespace troupe
