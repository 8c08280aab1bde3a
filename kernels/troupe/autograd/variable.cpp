#include "troupe/autograd/variable.hpp"

#include <algorithm>
#include <utility>

#include "troupe/autograd/backward_pass.hpp"
#include "troupe/autograd/detail/graph_node.hpp"
#include "troupe/autograd/grad_mode.hpp"
#include "troupe/tensor/memory.hpp"

namespace troupe {

tensor variable::gradient() const { return node && node->is_leaf() ? node->gradient : tensor(); }

void variable::backward(const tensor& gradient, const backward_options& options) const {
  backward_pass(*this, options).run(gradient);
}

variable leaf(tensor value) {
  auto node = std::make_shared<graph_node>(value);
  return {std::move(value), std::move(node)};
}

variable detach(const variable& from) { return {from.value, nullptr}; }

variable record(tensor value, const std::vector<variable>& inputs, std::unique_ptr<operation> recorded) {
  auto parameters = recorded->parameters();
  auto wanted = std::ranges::any_of(inputs, &variable::requires_gradient) ||
                std::ranges::any_of(parameters, &parameter::requires_gradient);
  if (!is_grad_enabled() || !wanted) return {std::move(value), nullptr};
  std::vector<std::shared_ptr<graph_node>> from;
  for (const auto& input : inputs) from.push_back(input.node);
  value.set_memory_category(memory_category::activations);
  auto node =
      std::make_shared<graph_node>(value, std::move(recorded), std::move(from), std::move(parameters));
  return {std::move(value), std::move(node)};
}

bool would_record(std::initializer_list<const variable*> inputs,
                  std::initializer_list<const parameter*> parameters) {
  return is_grad_enabled() &&
         (std::ranges::any_of(inputs, [](const auto* input) { return input->requires_gradient(); }) ||
          std::ranges::any_of(parameters, [](const auto* each) { return each && each->requires_gradient; }));
}

}  // namespace troupe
