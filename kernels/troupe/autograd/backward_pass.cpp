#include "troupe/autograd/backward_pass.hpp"

#include <algorithm>
#include <stdexcept>
#include <typeinfo>
#include <utility>

#include "troupe/autograd/detail/graph_node.hpp"
#include "troupe/autograd/grad_mode.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/error/type_name.hpp"
#include "troupe/ops/convert.hpp"

namespace troupe {
namespace {

/// A gradient of 1 with the value's shape, dtype and device.
tensor unit_gradient(const tensor_metadata& like) {
  if (like.extents.num_elements() != 1)
    throw_invalid("backward", "a gradient to start from, unless the value is a scalar", describe(like));
  return cast(tensor::full(like.extents, 1), like.type).to(like.target);
}

void require_count(const graph_node& node, std::size_t got) {
  if (got == node.inputs.size()) return;
  throw_invalid("backward",
                "from " + type_name(typeid(*node.recorded)) + "::backward_input a gradient for each of " +
                    std::to_string(node.inputs.size()) + " inputs",
                std::to_string(got) + " gradients");
}

void require_fitting(const graph_node& node, std::size_t input, const tensor& gradient) {
  const auto& form = node.inputs[input]->form();
  if (form.fits(gradient)) return;
  throw_invalid("backward",
                "from " + type_name(typeid(*node.recorded)) + "::backward_input a gradient " +
                    describe(form) + " for input " + std::to_string(input),
                describe(gradient));
}

/// Freezes what was frozen when the operation was recorded and is not any more: it gets no gradient.
class frozen_as_recorded {
 public:
  explicit frozen_as_recorded(const graph_node& node) {
    auto trained = node.trained_parameters();
    for (auto* each : node.recorded->parameters())
      if (each->requires_gradient && std::ranges::count(trained, each) == 0) unfrozen_since_.push_back(each);
    set(false);
  }
  ~frozen_as_recorded() { set(true); }
  frozen_as_recorded(const frozen_as_recorded&) = delete;
  frozen_as_recorded& operator=(const frozen_as_recorded&) = delete;

 private:
  void set(bool requires_gradient) {
    for (auto* each : unfrozen_since_) each->requires_gradient = requires_gradient;
  }

  std::vector<parameter*> unfrozen_since_;
};

/// Computes the gradients of the node's inputs.
void bring_to_inputs(const graph_node& node, const tensor& output_gradient) {
  auto gradients = node.recorded->backward_input(output_gradient);
  if (node.inputs.empty()) return;
  require_count(node, gradients.size());
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!node.inputs[i] || !gradients[i].defined()) continue;
    require_fitting(node, i, gradients[i]);
    node.inputs[i]->add_gradient(std::move(gradients[i]));
  }
}

}  // namespace

backward_pass::backward_pass(const variable& from, backward_options options)
    : options_(std::move(options)), root_(from.node) {
  if (!root_)
    throw std::logic_error(
        "[backward] expected a value that was recorded, got a constant: no input or "
        "parameter wants a gradient, or a no_grad was alive");
}

void backward_pass::run_inputs(const tensor& gradient) {
  walk(gradient, weight_mode::deferred);
  phase_ = phase::inputs_done;
}

void backward_pass::run_weights() {
  if (phase_ != phase::inputs_done)
    throw std::logic_error("[backward_pass::run_weights] expected a call after run_inputs, and only one");
  phase_ = phase::done;
  for (auto& [node, output_gradient] : std::exchange(deferred_weights_, {})) {
    add_weights(*node, output_gradient);
    if (!options_.retain_graph) node->recorded.reset();
    node.reset();
    output_gradient = {};
  }
}

void backward_pass::run(const tensor& gradient) {
  walk(gradient, weight_mode::immediate);
  phase_ = phase::done;
}

void backward_pass::walk(const tensor& gradient, weight_mode mode) {
  if (phase_ != phase::ready) throw std::logic_error("[backward_pass] expected one run, got a second");
  auto nodes = reachable_nodes(root_);
  if (options_.on_gradient) count_parameters(nodes);
  no_grad nothing_recorded;
  const auto& form = root_->form();
  if (gradient.defined() && !form.fits(gradient))
    throw_invalid("backward", "a gradient " + describe(form) + ", like the value", describe(gradient));
  root_->add_gradient(gradient.defined() ? gradient : unit_gradient(form));
  root_.reset();
  for (auto& node : nodes) {
    visit(node, mode);
    node.reset();
  }
}

void backward_pass::visit(const std::shared_ptr<graph_node>& node, weight_mode mode) {
  if (node->is_leaf()) return node->unshare_gradient();
  if (!node->recorded)
    throw std::logic_error(
        "[backward] expected to run through each operation once, got one that a backward pass within this "
        "one has used up");
  auto output_gradient = std::exchange(node->gradient, {});
  auto has_parameters = !node->trained_parameters().empty();
  auto is_weight_first =
      has_parameters && mode == weight_mode::immediate && node->recorded->can_run_weight_first();
  if (is_weight_first) add_weights(*node, output_gradient);
  if (output_gradient.defined()) bring_to_inputs(*node, output_gradient);
  if (has_parameters && mode == weight_mode::immediate && !is_weight_first)
    add_weights(*node, output_gradient);
  if (has_parameters && mode == weight_mode::deferred)
    deferred_weights_.push_back({node, std::move(output_gradient)});
  if (options_.retain_graph) return;
  node->inputs.clear();
  if (has_parameters && mode == weight_mode::deferred)
    node->recorded->release_inputs();
  else
    node->recorded.reset();
}

void backward_pass::add_weights(graph_node& node, const tensor& output_gradient) {
  auto parameters = node.trained_parameters();
  frozen_as_recorded unchanged(node);
  auto is_last_use = [this](parameter* each) { return remaining_.at(each) == 1; };
  if (options_.on_gradient && options_.on_rows && std::ranges::all_of(parameters, is_last_use)) {
    if (output_gradient.defined()) node.recorded->backward_weight_by_rows(output_gradient, options_.on_rows);
  } else if (output_gradient.defined()) {
    node.recorded->backward_weight(output_gradient);
  }
  if (!options_.on_gradient) return;
  for (auto* each : parameters)
    if (--remaining_.at(each) == 0 && each->has_gradient) options_.on_gradient(*each);
}

void backward_pass::count_parameters(const std::vector<std::shared_ptr<graph_node>>& nodes) {
  for (const auto& node : nodes)
    if (node->recorded)
      for (auto* each : node->trained_parameters()) ++remaining_[each];
}

}  // namespace troupe
