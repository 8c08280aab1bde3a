#include "troupe/parallel/module_program.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

std::string text_of(const microbatch& which) {
  return "step " + std::to_string(which.step) + " microbatch " + std::to_string(which.index);
}

/// Where `saved` and `expected`, each name once, differ; empty if they do not.
std::string difference(const std::map<std::string, tensor>& expected,
                       const std::vector<named_tensor>& saved) {
  std::map<std::string, tensor> found;
  for (const auto& [name, value] : saved) {
    auto known = expected.find(name);
    if (known == expected.end()) return "unknown tensor " + name;
    if (value.type() != known->second.type() || value.extents() != known->second.extents())
      return name + " is " + describe(value) + ", expected " + describe(known->second);
    if (!found.emplace(name, value).second) return "two tensors named " + name;
  }
  for (const auto& [name, value] : expected)
    if (!found.contains(name)) return "missing tensor " + name;
  return {};
}

}  // namespace

module_program::module_program(const nn::Sequential& model, stage_range layers, nn::CrossEntropy loss,
                               const optim::Optimizer& optimizer, std::uint64_t seed)
    : is_first_(layers.first == 0), is_last_(layers.last == model.size()), loss_(loss) {
  for (int index = layers.first; index < layers.last; ++index) {
    auto prefix = nn::child_prefix(index);
    layers_.push_back(model[index]->clone());
    layers_.back()->materialize(seed, prefix);
    std::ranges::move(layers_.back()->named_parameters(prefix), std::back_inserter(parameters_));
  }
  std::ranges::sort(parameters_, {}, &named_parameter::name);
  optimizer_ = optimizer(parameters_);
}

tensor module_program::forward(const microbatch& which, tensor input, tensor targets) {
  auto value = which.training ? begin_pass(which, std::move(input)) : variable{std::move(input)};
  for (const auto& layer : layers_) value = layer->forward(value);
  if (!is_last_) return std::move(value.value);
  record_loss(which, value, targets);
  return {};
}

variable module_program::begin_pass(const microbatch& which, tensor input) {
  auto [at, is_new] = passes_.try_emplace(which.index);
  if (!is_new)
    throw std::logic_error("[module_program::forward] " + text_of(which) + " is in flight already");
  at->second.step = which.step;
  return at->second.recorded.start(std::move(input),
                                   is_first_ ? tape::input_gradient::unwanted : tape::input_gradient::wanted);
}

void module_program::record_loss(const microbatch& which, const variable& output, const tensor& targets) {
  auto num_samples = output.value.extents()[0];
  auto global_batch = static_cast<double>(num_samples) * which.count;
  auto result = loss_(output, targets, 1 / global_batch);
  metrics_ += {.loss_sum = result.loss_sum, .num_samples = num_samples, .num_correct = result.num_correct};
}

module_program::pass& module_program::pass_of(const microbatch& which, const char* action) {
  auto at = passes_.find(which.index);
  if (at == passes_.end() || at->second.step != which.step)
    throw std::logic_error("[module_program::" + std::string(action) + "] no forward of " + text_of(which));
  return at->second;
}

tensor module_program::backward_input(const microbatch& which, tensor output_gradient) {
  return pass_of(which, "backward_input").recorded.backward_input(std::move(output_gradient));
}

void module_program::backward_weight(const microbatch& which) {
  auto& saved = pass_of(which, "backward_weight");
  if (which.index <= last_accumulated_)
    throw std::logic_error("[module_program::backward_weight] expected a microbatch after " +
                           std::to_string(last_accumulated_) + ", got " + text_of(which));
  saved.recorded.backward_weight();
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
  for (const auto& each : parameters_) std::ranges::fill(each.target->gradient.bytes(), std::byte{0});
}

step_metrics module_program::take_metrics() { return std::exchange(metrics_, {}); }

std::vector<named_tensor> module_program::parameters() {
  std::vector<named_tensor> result;
  for (const auto& each : parameters_) result.push_back({each.name, each.target->value});
  return result;
}

std::vector<named_tensor> module_program::state() {
  auto result = parameters();
  auto kept = optimizer_->state();
  std::ranges::sort(kept, {}, &named_tensor::name);
  std::ranges::move(kept, std::back_inserter(result));
  return result;
}

void module_program::load_state(const std::vector<named_tensor>& saved) {
  std::map<std::string, tensor> own;
  for (auto& [name, value] : state()) own.emplace(name, value);
  auto problem = difference(own, saved);
  if (!problem.empty()) throw std::runtime_error("cannot load the stage's state: " + problem);
  for (const auto& [name, value] : saved) own.at(name).copy_from(value);
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
