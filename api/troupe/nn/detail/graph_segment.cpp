#include "troupe/nn/detail/graph_segment.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "troupe/nn/forward_through.hpp"
#include "troupe/nn/multi_module.hpp"

namespace troupe::nn::detail {
namespace {

class identity_operation : public operation {
 public:
  std::vector<tensor> backward_input(const tensor& output_gradient) override { return {output_gradient}; }
};

/// The same value as a node of its own, which accumulates its own gradient.
variable as_own_node(const variable& from) {
  return from.node ? record(from.value, {from}, std::make_unique<identity_operation>()) : from;
}

/// A module may return an input, or one variable twice.
void give_own_nodes(std::vector<variable>& outputs, const std::vector<variable>& inputs) {
  for (auto output = outputs.begin(); output != outputs.end(); ++output) {
    auto is_same = [output](const variable& other) { return other.node == output->node; };
    if (std::any_of(outputs.begin(), output, is_same) || std::ranges::any_of(inputs, is_same))
      *output = as_own_node(*output);
  }
}

/// Where a segment keeps its values.
struct slot_table {
  std::map<graph_source, int> of_values;
  std::map<graph_use, int> of_uses;
  int count = 0;

  void add(const given_value& given) {
    for (const auto& use : given.uses) of_uses.emplace(use, count);
    if (given.uses.empty()) of_values.emplace(given.source, count);
    ++count;
  }
  int slot_of(const graph_source& source) const {
    auto found = of_values.find(source);
    if (found == of_values.end())
      throw std::logic_error("[graph_segment] expected output " + std::to_string(source.output) +
                             " of node " + std::to_string(source.node) +
                             " to be given or computed, got neither");
    return found->second;
  }
  int slot_of(const graph_source& source, const graph_use& use) const {
    auto found = of_uses.find(use);
    return found == of_uses.end() ? slot_of(source) : found->second;
  }
};

}  // namespace

graph_segment::graph_segment(const graph_wiring& wiring, int first,
                             std::vector<std::shared_ptr<Module>> modules,
                             const std::vector<given_value>& inputs, const std::vector<graph_source>& outputs)
    : modules_(std::move(modules)) {
  auto uses = uses_of(wiring);
  slot_table slots;
  for (const auto& given : inputs) slots.add(given);
  for (int node = first; node < first + static_cast<int>(modules_.size()); ++node) {
    auto& made = steps_.emplace_back();
    for (const auto& source : wiring.at(node).inputs) {
      graph_use use{node, static_cast<int>(made.inputs.size())};
      made.inputs.push_back({slots.slot_of(source, use), uses.at(source).size() > 1});
    }
    made.first_output = slots.count;
    for (int output = 0; output < wiring.at(node).num_outputs; ++output) slots.add({{node, output}});
  }
  for (const auto& output : outputs) outputs_.push_back(slots.slot_of(output));
  num_slots_ = slots.count;
  release_after_last_uses();
  fuse_activations();
}

void graph_segment::release_after_last_uses() {
  std::vector<bool> is_needed(static_cast<std::size_t>(num_slots_), false);
  for (auto slot : outputs_) is_needed[static_cast<std::size_t>(slot)] = true;
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step)
    for (auto input = step->inputs.rbegin(); input != step->inputs.rend(); ++input) {
      input->is_last = !is_needed[static_cast<std::size_t>(input->slot)];
      is_needed[static_cast<std::size_t>(input->slot)] = true;
    }
}

void graph_segment::fuse_activations() {
  for (std::size_t index = 0; index + 1 < steps_.size(); ++index) {
    const auto& relu_input = steps_[index + 1].inputs.front();
    steps_[index].is_with_next = relu_input.slot == steps_[index].first_output && relu_input.is_last &&
                                 !relu_input.is_one_of_several &&
                                 fuses_with(*modules_[index], *modules_[index + 1]);
  }
}

std::vector<variable> graph_segment::run(std::vector<variable> inputs,
                                         const std::function<void(std::size_t)>& on_module) const {
  auto slots = std::move(inputs);
  slots.resize(static_cast<std::size_t>(num_slots_));
  for (std::size_t index = 0; index < steps_.size(); ++index) {
    if (on_module) on_module(index);
    auto taken = take_inputs(steps_[index], slots);
    auto outputs = outputs_of(index, taken);
    give_own_nodes(outputs, taken);
    if (steps_[index].is_with_next) ++index;
    std::ranges::move(outputs, slots.begin() + steps_[index].first_output);
  }
  std::vector<variable> outputs;
  for (auto slot : outputs_) outputs.push_back(slots[static_cast<std::size_t>(slot)]);
  return outputs;
}

std::vector<variable> graph_segment::take_inputs(const step& consumer, std::vector<variable>& slots) {
  std::vector<variable> taken;
  for (const auto& [slot, is_one_of_several, is_last] : consumer.inputs) {
    auto& value = slots[static_cast<std::size_t>(slot)];
    taken.push_back(is_one_of_several ? as_own_node(value) : value);
    if (is_last) value = {};
  }
  return taken;
}

std::vector<variable> graph_segment::outputs_of(std::size_t index,
                                                const std::vector<variable>& inputs) const {
  auto& module = *modules_[index];
  if (steps_[index].is_with_next) return {forward_with_relu(module, inputs.front())};
  if (auto* several = dynamic_cast<MultiModule*>(&module)) return (*several)(inputs);
  return {module(inputs.front())};
}

}  // namespace troupe::nn::detail
