#include "troupe/parallel/module_program.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "troupe/autograd/autocast.hpp"
#include "troupe/autograd/grad_mode.hpp"
#include "troupe/autograd/pass_id.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/nn/forward_through.hpp"
#include "troupe/ops/copy_by_name.hpp"
#include "troupe/parallel/first_pass_checks.hpp"
#include "troupe/parallel/initial_weights.hpp"
#include "troupe/parallel/tied_weights.hpp"

namespace troupe {
namespace {

std::string text_of(const microbatch& mb) {
  return "step " + std::to_string(mb.step) + " microbatch " + std::to_string(mb.index);
}

/// Moves the uses of a tied weight, in order, out of `parameters`.
std::vector<named_parameter> take_uses(const tied_weight& weight, std::vector<named_parameter>& parameters) {
  std::vector<named_parameter> uses;
  for (const auto& use : weight.uses) {
    auto found = std::ranges::find(parameters, use.name, &named_parameter::name);
    if (found == parameters.end()) continue;
    uses.push_back(*found);
    parameters.erase(found);
  }
  return uses;
}

/// Makes all uses in the stage share one value, initialized as the owner's.
void begin_alike(const tied_weight& weight, const std::vector<named_parameter>& uses, std::uint64_t seed) {
  auto& value = uses.front().target->value();
  if (weight.init) weight.init(value, seed, weight.name);
  for (const auto& use : uses) {
    use.target->value() = value;
    use.target->requires_gradient = weight.requires_gradient;
  }
}

std::vector<std::string> names_of(const tied_weight& weight) {
  std::vector<std::string> names;
  for (const auto& use : weight.uses) names.push_back(use.name);
  return names;
}

std::vector<parameter*> targets_of(const std::vector<named_parameter>& parameters) {
  std::vector<parameter*> targets;
  for (const auto& each : parameters) targets.push_back(each.target);
  return targets;
}

}  // namespace

module_program::module_program(const nn::Sequential& model, const std::vector<stage_range>& partition,
                               int stage, const module_program_options& options)
    : is_first_(stage == 0),
      is_last_(static_cast<std::size_t>(stage) + 1 == partition.size()),
      loss_(options.loss),
      precision_(options.numerics.precision),
      looks_for_non_finite_(options.numerics.on_non_finite != non_finite_policy::go_on) {
  auto range = partition.at(static_cast<std::size_t>(stage));
  for (int index = range.first; index < range.last; ++index) {
    auto prefix = model.prefix_of(index);
    layers_.push_back(model[index]->clone());
    layers_.back()->materialize(options.seed, prefix);
    std::ranges::move(layers_.back()->named_parameters(prefix), std::back_inserter(parameters_));
    std::ranges::move(layers_.back()->named_buffers(prefix), std::back_inserter(buffers_));
  }
  std::ranges::sort(buffers_, {}, &nn::named_buffer::name);
  std::vector<tied_gradients::weight> tied;
  for (const auto& weight : tied_weights_of(model)) {
    auto stages = stages_of(weight, partition);
    if (!std::ranges::count(stages, stage)) continue;
    auto here = take_uses(weight, parameters_);
    begin_alike(weight, here, options.seed);
    parameters_.push_back({weight.name, here.front().target});
    if (stages.front() != stage) borrowed_.insert(weight.name);
    if (weight.requires_gradient) tied.push_back({names_of(weight), here, stages.size() > 1});
  }
  std::ranges::sort(parameters_, {}, &named_parameter::name);
  if (options.initial_weights) begin(*options.initial_weights);
  optimizer_ = options.optimizer(parameters_);
  gradients_.emplace(options.numerics, reductions_of(model, partition, options.numerics), counted_in(model),
                     targets_of(parameters_), tied_gradients(std::move(tied)));
}

void module_program::begin(const std::vector<named_tensor>& weights) {
  std::map<std::string, tensor> own;
  for (const auto& each : parameters_) own.emplace(each.name, each.target->value());
  for (const auto& each : buffers_) own.emplace(each.name, each.target->value);
  for (const auto& [name, value] : weights)
    if (auto found = own.find(name); found != own.end()) found->second.copy_from(value);
}

std::vector<indexed_parameter> module_program::counted_in(const nn::Sequential& model) const {
  auto names = parameter_names_of(model);
  std::vector<indexed_parameter> counted;
  for (const auto& [name, target] : parameters_)
    if (!borrowed_.contains(name))
      counted.push_back({std::ranges::lower_bound(names, name) - names.begin(), target});
  return counted;
}

std::vector<tensor> module_program::forward(const microbatch& mb, std::vector<tensor> inputs,
                                            tensor targets) {
  autocast computes(precision_);
  auto& input = inputs.at(0);
  if (!mb.training) {
    no_grad nothing_recorded;
    auto output = run_layers({std::move(input), nullptr}, mb.training);
    if (!is_last_ || !targets.defined()) return {output.value};
    take_loss(mb, output, targets);
    return {};
  }
  pass_scope scope(pass_id{static_cast<std::uint32_t>(mb.step), static_cast<std::uint32_t>(mb.index)});
  auto& recorded = begin_pass(mb, std::move(input));
  auto output = run_layers(recorded.input, mb.training);
  if (!is_checked_) check_first_pass(output, targets);
  auto result = is_last_ ? take_loss(mb, output, targets) : std::move(output);
  if (result.requires_gradient()) recorded.back.emplace(result);
  if (is_last_) return {};
  return {result.value};
}

/// Finds errors in user-defined modules and losses that would otherwise only show in wrong results.
void module_program::check_first_pass(const variable& output, const tensor& targets) {
  check_parameters(output, layers_);
  if (is_last_) check_loss(loss_, output.value, targets);
  is_checked_ = true;
}

variable module_program::run_layers(variable value, bool training) {
  for (const auto& layer : layers_)
    if (layer->is_training() != training) layer->train(training);
  return nn::forward_through(layers_, std::move(value));
}

module_program::pass& module_program::begin_pass(const microbatch& mb, tensor input) {
  auto [at, is_new] = passes_.try_emplace(mb.index);
  if (!is_new) throw std::logic_error("[module_program::forward] " + text_of(mb) + " is in flight already");
  at->second.step = mb.step;
  at->second.input = is_first_ ? variable{std::move(input), nullptr} : leaf(std::move(input));
  return at->second;
}

variable module_program::take_loss(const microbatch& mb, const variable& output, const tensor& targets) {
  auto num_samples = targets.num_elements();  // a token is a sample
  auto global_batch = static_cast<double>(num_samples) * mb.count;
  auto result = loss_(output, targets, gradients_->loss_scale() / global_batch);
  metrics_ += {.loss_sum = result.loss_sum, .num_samples = num_samples, .num_correct = result.num_correct};
  return result.loss;
}

module_program::pass& module_program::pass_of(const microbatch& mb, const char* action) {
  auto at = passes_.find(mb.index);
  if (at == passes_.end() || at->second.step != mb.step)
    throw std::logic_error("[module_program::" + std::string(action) + "] no forward of " + text_of(mb));
  return at->second;
}

std::vector<tensor> module_program::backward_input(const microbatch& mb,
                                                   std::vector<tensor> output_gradients) {
  auto& recorded = pass_of(mb, "backward_input");
  // Otherwise nothing here is learned, and nothing before.
  if (recorded.back) recorded.back->run_inputs(is_last_ ? tensor() : std::move(output_gradients.at(0)));
  if (is_first_) return {};
  return {recorded.back ? recorded.input.gradient() : tensor()};
}

void module_program::backward_weight(const microbatch& mb) {
  auto& saved = pass_of(mb, "backward_weight");
  if (mb.index <= last_accumulated_)
    throw std::logic_error("[module_program::backward_weight] expected a microbatch after " +
                           std::to_string(last_accumulated_) + ", got " + text_of(mb));
  if (saved.back) saved.back->run_weights();
  passes_.erase(mb.index);
  last_accumulated_ = mb.index;
  if (mb.index + 1 == mb.count) gradients_->accumulated();
}

std::string module_program::non_finite() {
  if (!looks_for_non_finite_) return {};
  if (!std::isfinite(metrics_.loss_sum)) return "the loss";
  const auto* found = gradients_->first_non_finite();
  if (!found) return {};
  return "the gradient of " + std::ranges::find(parameters_, found, &named_parameter::target)->name;
}

void module_program::apply(std::uint64_t step) {
  if (!passes_.empty())
    throw std::logic_error("[module_program::apply] microbatch " + std::to_string(passes_.begin()->first) +
                           " of step " + std::to_string(step) + " is still in flight");
  if (auto counted = gradients_->optimizer_step(step)) optimizer_->apply(*counted);
  gradients_->mark_stepped();
  last_accumulated_ = -1;
}

void module_program::discard() {
  passes_.clear();
  last_accumulated_ = -1;
  metrics_ = {};
  for (const auto& each : parameters_) each.target->has_gradient = false;
  gradients_->discard();
}

step_metrics module_program::take_metrics() { return std::exchange(metrics_, {}); }

std::vector<named_tensor> module_program::parameters() {
  std::vector<named_tensor> result;
  for (const auto& each : parameters_)
    if (!borrowed_.contains(each.name)) result.push_back({each.name, each.target->value()});
  return result;
}

std::vector<named_tensor> module_program::weights() {
  auto result = parameters();
  for (const auto& each : buffers_) result.push_back({each.name, each.target->value});
  return result;
}

std::vector<named_tensor> module_program::state() {
  std::vector<named_tensor> result;
  for (const auto& each : parameters_) result.push_back({each.name, each.target->value()});
  for (const auto& each : buffers_) result.push_back({each.name, each.target->value});
  auto kept = optimizer_->state();
  std::ranges::sort(kept, {}, &named_tensor::name);
  std::ranges::move(kept, std::back_inserter(result));
  std::ranges::move(gradients_->state(), std::back_inserter(result));
  return result;
}

void module_program::load_state(const std::vector<named_tensor>& saved) {
  copy_by_name(state(), saved);
  for (const auto& each : parameters_) each.target->mark_changed();
  gradients_->mark_changed();
}

program_factory make_module_programs(nn::Sequential model, int stages, module_program_options options) {
  auto partition = partition_into_stages(model, stages);
  if (options.initial_weights) check_initial_weights(model, *options.initial_weights);
  return [model = std::move(model), partition = std::move(partition),
          options = std::move(options)](int stage) -> std::unique_ptr<stage_program> {
    return std::make_unique<module_program>(model, partition, stage, options);
  };
}

}  // namespace troupe
