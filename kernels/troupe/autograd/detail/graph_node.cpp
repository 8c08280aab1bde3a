#include "troupe/autograd/detail/graph_node.hpp"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include "troupe/ops/elementwise.hpp"

namespace troupe {
namespace {

std::atomic<std::uint64_t> newest = 0;

}  // namespace

std::uint64_t newest_sequence_number() { return newest; }

std::string describe(const tensor_metadata& form) {
  auto text = std::string(to_string(form.type)) + to_string(form.extents);
  return form.target.type == device::kind::cpu ? text : text + " on " + to_string(form.target);
}

graph_node::graph_node(const tensor& value) : form_(value), is_leaf_(true), order_(++newest) {}

graph_node::graph_node(const tensor& value, std::unique_ptr<operation> made_by,
                       std::vector<std::shared_ptr<graph_node>> from, std::vector<parameter*> parameters)
    : recorded(std::move(made_by)),
      inputs(std::move(from)),
      form_(value),
      is_leaf_(false),
      order_(++newest),
      parameters_(std::move(parameters)) {
  std::erase_if(parameters_, [](const parameter* each) { return !each->requires_gradient; });
}

// Destroys nodes iteratively: recursion over a chain of a million nodes would overflow the stack.
graph_node::~graph_node() {
  std::vector<std::shared_ptr<graph_node>> last_owned = std::move(inputs);
  while (!last_owned.empty()) {
    auto node = std::move(last_owned.back());
    last_owned.pop_back();
    if (!node || node.use_count() > 1) continue;
    for (auto& input : node->inputs) last_owned.push_back(std::move(input));
    node->inputs.clear();
  }
}

void graph_node::add_gradient(tensor more) {
  if (!more.defined()) return;
  gradient = gradient.defined() ? add(gradient, more) : std::move(more);
}

std::vector<parameter*> graph_node::trained_parameters() const {
  auto trained = parameters_;
  std::erase_if(trained, [](const parameter* each) { return !each->requires_gradient; });
  return trained;
}

void graph_node::unshare_gradient() {
  if (gradient.is_shared()) gradient = gradient.clone();
}

std::vector<std::shared_ptr<graph_node>> reachable_nodes(const std::shared_ptr<graph_node>& root) {
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

}  // namespace troupe
