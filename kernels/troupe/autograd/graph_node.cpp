#include "troupe/autograd/graph_node.hpp"

#include <atomic>
#include <utility>

#include "troupe/ops/elementwise.hpp"

namespace troupe {
namespace {

std::uint64_t next_order() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

}  // namespace

graph_node::graph_node() : is_leaf_(true), order_(next_order()) {}

graph_node::graph_node(std::unique_ptr<operation> made_by, std::vector<std::shared_ptr<graph_node>> from)
    : recorded(std::move(made_by)), inputs(std::move(from)), is_leaf_(false), order_(next_order()) {}

// One by one: a chain of a million nodes must not need a million frames of the stack.
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

void add_to(tensor& sum, const tensor& more) {
  if (!more.defined()) return;
  sum = sum.defined() ? add(sum, more) : more;
}

}  // namespace troupe
