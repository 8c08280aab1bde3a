#include "troupe/autograd/backward_pass.hpp"

#include <algorithm>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include "troupe/autograd/grad_mode.hpp"
#include "troupe/autograd/graph_node.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

/// All that `root` depends on, newest first.
std::vector<std::shared_ptr<graph_node>> nodes_behind(const std::shared_ptr<graph_node>& root) {
  std::vector<std::shared_ptr<graph_node>> found{root};
  std::unordered_set<graph_node*> seen{root.get()};
  for (std::size_t at = 0; at < found.size(); ++at) {
    auto node = found[at];  // a copy: the vector grows
    if (!node->is_leaf() && !node->recorded)
      throw std::logic_error(
          "[backward] expected a graph that was not used up, got one that backward ran through before; pass "
          "retain_graph = true the first time");
    for (const auto& input : node->inputs)
      if (input && seen.insert(input.get()).second) found.push_back(input);
  }
  std::ranges::sort(found, std::greater(), [](const auto& node) { return node->order(); });
  return found;
}

tensor unit_gradient(const shape& extents) {
  if (extents.num_elements() != 1)
    throw_invalid("backward", "a gradient to start from, unless the value is a scalar", to_string(extents));
  return tensor::full(extents, 1);
}

}  // namespace

backward_pass::backward_pass(const variable& from, backward_options options)
    : options_(std::move(options)), root_(from.node), root_extents_(from.value.extents()) {
  if (!root_)
    throw std::logic_error(
        "[backward] expected a value that was recorded, got a constant: no input or "
        "parameter wants a gradient, or a no_grad was alive");
}

void backward_pass::run_inputs(const tensor& gradient) {
  walk(gradient, weights::later);
  phase_ = phase::inputs_done;
}

void backward_pass::run_weights() {
  if (phase_ != phase::inputs_done)
    throw std::logic_error("[backward_pass::run_weights] expected a call after run_inputs, and only one");
  phase_ = phase::done;
  for (auto& [node, output_gradient] : std::exchange(for_weights_, {})) {
    add_weights(*node, output_gradient);
    if (!options_.retain_graph) node->recorded.reset();
    node.reset();
    output_gradient = {};
  }
}

void backward_pass::run(const tensor& gradient) {
  walk(gradient, weights::at_once);
  phase_ = phase::done;
}

void backward_pass::walk(const tensor& gradient, weights when) {
  if (phase_ != phase::ready) throw std::logic_error("[backward_pass] expected one run, got a second");
  auto nodes = nodes_behind(root_);
  if (options_.on_gradient) count_parameters(nodes);
  no_grad nothing_recorded;
  add_to(root_->gradient, gradient.defined() ? gradient : unit_gradient(root_extents_));
  root_.reset();
  for (auto& node : nodes) {
    visit(node, when);
    node.reset();
  }
}

void backward_pass::visit(const std::shared_ptr<graph_node>& node, weights when) {
  if (node->is_leaf()) return;
  auto output_gradient = std::exchange(node->gradient, {});
  auto has_parameters = !node->recorded->parameters().empty();
  auto is_weight_first =
      has_parameters && when == weights::at_once && node->recorded->weights_may_come_first();
  if (is_weight_first) add_weights(*node, output_gradient);
  auto gradients = node->recorded->backward_input(output_gradient);
  for (std::size_t i = 0; i < node->inputs.size(); ++i)
    if (node->inputs[i]) add_to(node->inputs[i]->gradient, gradients.at(i));
  if (has_parameters && when == weights::at_once && !is_weight_first) add_weights(*node, output_gradient);
  if (has_parameters && when == weights::later) for_weights_.push_back({node, std::move(output_gradient)});
  if (options_.retain_graph) return;
  node->inputs.clear();
  if (has_parameters && when == weights::later)
    node->recorded->release_inputs();
  else
    node->recorded.reset();
}

void backward_pass::add_weights(graph_node& node, const tensor& output_gradient) {
  auto parameters = node.recorded->parameters();
  auto is_last_use = [this](parameter* each) { return remaining_.at(each) == 1; };
  if (options_.on_gradient && options_.on_rows && std::ranges::all_of(parameters, is_last_use))
    node.recorded->backward_weight_by_rows(output_gradient, options_.on_rows);
  else
    node.recorded->backward_weight(output_gradient);
  if (!options_.on_gradient) return;
  for (auto* each : parameters)
    if (--remaining_.at(each) == 0) options_.on_gradient(*each);
}

void backward_pass::count_parameters(const std::vector<std::shared_ptr<graph_node>>& nodes) {
  for (const auto& node : nodes)
    if (node->recorded)
      for (auto* each : node->recorded->parameters()) ++remaining_[each];
}

}  // namespace troupe
