#include "troupe/nn/graph.hpp"

#include <algorithm>
#include <stdexcept>

#include "troupe/error/errors.hpp"
#include "troupe/nn/detail/graph_segment.hpp"

namespace troupe::nn {
namespace {

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const auto& each : texts) all += (all.empty() ? "" : ", ") + each;
  return all;
}

std::string counted(int number, const std::string& what) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

}  // namespace

Graph::Graph(Sequential chain) {
  input();
  for (int index = 0; index < chain.size(); ++index) {
    nodes_.add("Graph", chain.name_of(index), chain[index]);
    wiring_.nodes.push_back({{{index - 1, 0}}, 1});
  }
  wiring_.outputs = {{chain.size() - 1, 0}};
}

graph_value Graph::input(std::string name) {
  require_incomplete("Graph::input");
  if (std::ranges::count(names(), name) + std::ranges::count(input_names_, name) > 0)
    throw_invalid("Graph::input", "a name that nothing else in the graph has", "'" + name + "'");
  ++wiring_.num_inputs;
  return input_names_.emplace_back(std::move(name));
}

graph_value Graph::add(std::string name, std::shared_ptr<Module> module,
                       const std::vector<graph_value>& inputs) {
  constexpr auto function = "Graph::add";
  require_incomplete(function);
  auto node = "node '" + name + "'";
  if (!module) throw_invalid(function, "a module as " + node, "a null pointer");
  if (name.empty() || std::ranges::count(input_names_, name) > 0)
    throw_invalid(function, "a name that nothing else in the graph has", "'" + name + "'");
  graph_wiring::node wired{{}, num_outputs_of(*module)};
  if (wired.num_outputs < 1)
    throw_invalid(function, "a module with an output as " + node,
                  "one with none: if it is a Graph, call its output() before");
  auto expected = num_inputs_of(*module);
  auto is_right =
      expected == MultiModule::any_number ? !inputs.empty() : std::cmp_equal(expected, inputs.size());
  if (!is_right || inputs.empty())
    throw_invalid(function,
                  (expected < 1 ? "at least one input" : counted(expected, "input")) + " of " + node +
                      ", as its module takes",
                  std::to_string(inputs.size()));
  for (const auto& each : inputs) wired.inputs.push_back(find(function, each, node));
  nodes_.add(function, name, std::move(module));
  wiring_.nodes.push_back(std::move(wired));
  return name;
}

void Graph::output(const std::vector<graph_value>& values) {
  constexpr auto function = "Graph::output";
  require_incomplete(function);
  if (values.empty()) throw_invalid(function, "at least one value", "none");
  std::vector<graph_source> found;
  for (const auto& each : values) found.push_back(find(function, each, "the graph's output"));
  wiring_.outputs = std::move(found);
  try {
    require_all_used();
  } catch (...) {
    wiring_.outputs.clear();
    throw;
  }
}

void Graph::require_incomplete(const char* function) const {
  if (!wiring_.outputs.empty())
    throw_invalid(function, "a graph that is not complete", "one whose output() was called: call it last");
}

graph_source Graph::find(const char* function, const graph_value& value, const std::string& taker) const {
  graph_source source{graph_inputs, 0};
  auto num_outputs = 1;
  if (auto input = std::ranges::find(input_names_, value.node); input != input_names_.end()) {
    source.output = static_cast<int>(input - input_names_.begin());
    if (value.output <= 0) return source;
  } else if (auto node = std::ranges::find(names(), value.node); node != names().end()) {
    source.node = static_cast<int>(node - names().begin());
    num_outputs = wiring_.at(source.node).num_outputs;
    source.output = value.output == graph_value::only_output ? 0 : value.output;
    auto is_one = value.output != graph_value::only_output || num_outputs == 1;
    if (is_one && source.output >= 0 && source.output < num_outputs) return source;
  } else {
    throw_invalid(function,
                  "an input or a node that was added before, for " + taker + ": " + joined(input_names_) +
                      (names().empty() ? "" : ", ") + joined(names()),
                  "'" + value.node + "'. Add nodes after those whose values they take");
  }
  throw_invalid(function,
                num_outputs == 1 ? "'" + value.node + "', which has one output, for " + taker
                                 : "one of the " + std::to_string(num_outputs) + " outputs of '" +
                                       value.node + "' for " + taker + ", " + value.node + "[0] to " +
                                       value.node + "[" + std::to_string(num_outputs - 1) + "]",
                value.output == graph_value::only_output
                    ? value.node
                    : value.node + "[" + std::to_string(value.output) + "]");
}

/// From the outputs back to the inputs.
void Graph::require_all_used() const {
  std::vector<bool> is_used(static_cast<std::size_t>(size()), false),
      is_input_used(input_names_.size(), false);
  auto mark = [&](const graph_source& source) {
    (source.node == graph_inputs ? is_input_used[static_cast<std::size_t>(source.output)]
                                 : is_used[static_cast<std::size_t>(source.node)]) = true;
  };
  std::ranges::for_each(wiring_.outputs, mark);
  for (int node = size(); node-- > 0;)
    if (is_used[static_cast<std::size_t>(node)]) std::ranges::for_each(wiring_.at(node).inputs, mark);
  std::vector<std::string> unused;
  for (std::size_t i = 0; i < input_names_.size(); ++i)
    if (!is_input_used[i]) unused.push_back(input_names_[i]);
  for (std::size_t i = 0; i < is_used.size(); ++i)
    if (!is_used[i]) unused.push_back(names()[i]);
  if (!unused.empty())
    throw_invalid("Graph::output", "every input and node to lead to an output",
                  joined(unused) + " without one: use their values, or leave them out");
}

std::vector<variable> Graph::forward_all(const std::vector<variable>& inputs) {
  if (wiring_.outputs.empty())
    throw std::logic_error("[Graph] expected a complete graph, got one without output: call output()");
  std::vector<detail::given_value> given;
  for (int input = 0; input < wiring_.num_inputs; ++input) given.push_back({{graph_inputs, input}});
  return detail::graph_segment(wiring_, 0, nodes_.modules(), given, wiring_.outputs).run(inputs);
}

std::string Graph::inputs_text(int index) const {
  name_of(index);
  return text_of(wiring_.at(index).inputs);
}

std::string Graph::outputs_text() const { return text_of(wiring_.outputs); }

std::string Graph::text_of(const std::vector<graph_source>& sources) const {
  std::vector<std::string> texts;
  for (const auto& [node, output] : sources)
    texts.push_back(node == graph_inputs                ? input_names_[static_cast<std::size_t>(output)]
                    : wiring_.at(node).num_outputs == 1 ? name_of(node)
                                                        : name_of(node) + "[" + std::to_string(output) + "]");
  return joined(texts);
}

}  // namespace troupe::nn
