#include "troupe/parallel/module_program.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "troupe/autograd/grad_mode.hpp"
#include "troupe/autograd/pass_place.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/nn/copy_by_name.hpp"
#include "troupe/nn/forward_through.hpp"

namespace troupe {
namespace {

std::string text_of(const microbatch& which) {
  return "step " + std::to_string(which.step) + " microbatch " + std::to_string(which.index);
}

}  // namespace

module_program::module_program(const nn::Sequential& model, stage_range layers, nn::CrossEntropy loss,
                               const optim::Optimizer& optimizer, std::uint64_t seed)
    : is_first_(layers.first == 0), is_last_(layers.last == model.size()), loss_(loss) {
  for (int index = layers.first; index < layers.last; ++index) {
    auto prefix = model.prefix_of(index);
    layers_.push_back(model[index]->clone());
    layers_.back()->materialize(seed, prefix);
    std::ranges::move(layers_.back()->named_parameters(prefix), std::back_inserter(parameters_));
    std::ranges::move(layers_.back()->named_buffers(prefix), std::back_inserter(buffers_));
  }
  std::ranges::sort(parameters_, {}, &named_parameter::name);
  std::ranges::sort(buffers_, {}, &nn::named_buffer::name);
  optimizer_ = optimizer(parameters_);
}

tensor module_program::forward(const microbatch& which, tensor input, tensor targets) {
  if (!which.training) {
    no_grad nothing_recorded;
    auto output = run_layers({std::move(input), nullptr}, which.training);
    if (!is_last_) return output.value;
    take_loss(which, output, targets);
    return {};
  }
  pass_scope place(
      pass_place{static_cast<std::uint32_t>(which.step), static_cast<std::uint32_t>(which.index)});
  auto& recorded = begin_pass(which, std::move(input));
  auto output = run_layers(recorded.input, which.training);
  auto result = is_last_ ? take_loss(which, output, targets) : std::move(output);
  if (result.requires_gradient()) recorded.back.emplace(result);
  return is_last_ ? tensor() : result.value;
}

variable module_program::run_layers(variable value, bool training) {
  for (const auto& layer : layers_)
    if (layer->is_training() != training) layer->train(training);
  return nn::forward_through(layers_, std::move(value));
}

module_program::pass& module_program::begin_pass(const microbatch& which, tensor input) {
  auto [at, is_new] = passes_.try_emplace(which.index);
  if (!is_new)
    throw std::logic_error("[module_program::forward] " + text_of(which) + " is in flight already");
  at->second.step = which.step;
  at->second.input = is_first_ ? variable{std::move(input), nullptr} : leaf(std::move(input));
  return at->second;
}

variable module_program::take_loss(const microbatch& which, const variable& output, const tensor& targets) {
  auto num_samples = targets.num_elements();  // a token is a sample
  auto global_batch = static_cast<double>(num_samples) * which.count;
  auto result = loss_(output, targets, 1 / global_batch);
  metrics_ += {.loss_sum = result.loss_sum, .num_samples = num_samples, .num_correct = result.num_correct};
  return result.loss;
}

module_program::pass& module_program::pass_of(const microbatch& which, const char* action) {
  auto at = passes_.find(which.index);
  if (at == passes_.end() || at->second.step != which.step)
    throw std::logic_error("[module_program::" + std::string(action) + "] no forward of " + text_of(which));
  return at->second;
}

tensor module_program::backward_input(const microbatch& which, tensor output_gradient) {
  auto& recorded = pass_of(which, "backward_input");
  if (!recorded.back) return {};  // nothing here is learned, and nothing before
  recorded.back->run_inputs(output_gradient);
  return recorded.input.gradient();
}

void module_program::backward_weight(const microbatch& which) {
  auto& saved = pass_of(which, "backward_weight");
  if (which.index <= last_accumulated_)
    throw std::logic_error("[module_program::backward_weight] expected a microbatch after " +
                           std::to_string(last_accumulated_) + ", got " + text_of(which));
  if (saved.back) saved.back->run_weights();
  passes_.erase(which.index);
  last_accumulated_ = which.index;
}

void module_program::apply(std::uint64_t step) {
  if (!passes_.empty())
    throw std::logic_error("[module_program::apply] microbatch " + std::to_string(passes_.begin()->first) +
                           " of step " + std::to_string(step) + " is still in flight");
  optimizer_->apply(step);
  last_accumulated_ = -1;
}

void module_program::discard() {
  passes_.clear();
  last_accumulated_ = -1;
  metrics_ = {};
  for (const auto& each : parameters_) each.target->has_gradient = false;
}

step_metrics module_program::take_metrics() { return std::exchange(metrics_, {}); }

std::vector<named_tensor> module_program::parameters() {
  std::vector<named_tensor> result;
  for (const auto& each : parameters_) result.push_back({each.name, each.target->value});
  return result;
}

std::vector<named_tensor> module_program::state() {
  auto result = parameters();
  for (const auto& each : buffers_) result.push_back({each.name, each.target->value});
  auto kept = optimizer_->state();
  std::ranges::sort(kept, {}, &named_tensor::name);
  std::ranges::move(kept, std::back_inserter(result));
  return result;
}

void module_program::load_state(const std::vector<named_tensor>& saved) {
  nn::copy_by_name(state(), saved);
  for (const auto& each : parameters_) each.target->changed();
}

program_factory make_module_programs(nn::Sequential model, int stages, nn::CrossEntropy loss,
                                     optim::Optimizer optimizer, std::uint64_t seed) {
  auto ranges = cut_into_stages(model, stages);
  return [model = std::move(model), ranges = std::move(ranges), loss, optimizer = std::move(optimizer),
          seed](int stage) -> std::unique_ptr<stage_program> {
    auto layers = ranges.at(static_cast<std::size_t>(stage));
    return std::make_unique<module_program>(model, layers, loss, optimizer, seed);
  };
}

}  // namespace troupe
