#include "troupe/nn/nested_layers.hpp"

#include <algorithm>
#include <map>

#include "troupe/error/errors.hpp"
#include "troupe/nn/tied_linear.hpp"

namespace troupe::nn {
namespace {

/// Where a graph's values are in the graph that is being built.
using value_table = std::map<graph_source, graph_value>;

std::vector<graph_value> values_at(const std::vector<graph_source>& sources, const value_table& table) {
  std::vector<graph_value> values;
  for (const auto& each : sources) values.push_back(table.at(each));
  return values;
}

void add_node(Graph& into, const std::string& name, const Graph& from, int node, value_table& table) {
  const auto& wired = from.wiring().at(node);
  auto value = into.add(name, from[node], values_at(wired.inputs, table));
  for (int output = 0; output < wired.num_outputs; ++output)
    table.insert_or_assign({node, output}, value[output]);
}

/// The children of a Sequential, one after the other. Returns the last one's output.
graph_value add_chain(Graph& into, const std::string& prefix, const Sequential& chain, graph_value value) {
  for (int child = 0; child < chain.size(); ++child)
    value = into.add(prefix + chain.name_of(child), chain[child], {value});
  return value;
}

/// The nodes of a Graph that takes these values. Returns its outputs.
std::vector<graph_value> add_graph(Graph& into, const std::string& prefix, const Graph& inner,
                                   const std::vector<graph_value>& inputs) {
  value_table table;
  for (int input = 0; input < inner.num_inputs(); ++input)
    table.insert_or_assign({graph_inputs, input}, inputs[static_cast<std::size_t>(input)]);
  for (int node = 0; node < inner.size(); ++node)
    add_node(into, prefix + inner.name_of(node), inner, node, table);
  return values_at(inner.wiring().outputs, table);
}

/// The nodes within node `node` of `outer`.
void add_nested(Graph& into, const Graph& outer, int node, value_table& table) {
  auto inputs = values_at(outer.wiring().at(node).inputs, table);
  std::vector<graph_value> outputs;
  if (const auto* inner = dynamic_cast<const Graph*>(outer[node].get()))
    outputs = add_graph(into, outer.prefix_of(node), *inner, inputs);
  else
    outputs = {add_chain(into, outer.prefix_of(node), dynamic_cast<const Sequential&>(*outer[node]),
                         inputs.front())};
  for (std::size_t output = 0; output < outputs.size(); ++output)
    table.insert_or_assign({node, static_cast<int>(output)}, outputs[output]);
}

bool has_tied_weights(Module& module) {
  bool found = dynamic_cast<TiedLinear*>(&module) != nullptr;
  module.each_child(
      [&found](const std::string&, Module& child) { found = found || has_tied_weights(child); });
  return found;
}

std::string unused_input_name(const Graph& model) {
  std::string name = "input";
  while (std::ranges::count(model.names(), name) > 0) name += "_";
  return name;
}

}  // namespace

bool has_nested_layers(const Graph& model, int node) {
  const auto* module = model[node].get();
  if (const auto* chain = dynamic_cast<const Sequential*>(module)) return chain->size() > 0;
  return dynamic_cast<const Graph*>(module) != nullptr;
}

Graph with_nested_layers(const Graph& model, int node) {
  const auto& name = model.name_of(node);
  if (!has_nested_layers(model, node))
    throw bad_input("layer " + name +
                    " has no layers within that can be taken apart: expected an "
                    "nn::Sequential or an nn::Graph");
  if (has_tied_weights(*model[node]))
    throw bad_input("layer " + name +
                    " cannot be taken apart, because an nn::TiedLinear within finds its weight by a name "
                    "within. Place " +
                    name + " as a whole");
  Graph result;
  value_table table;
  auto input = unused_input_name(model);
  for (int index = 0; index < model.num_inputs(); ++index)
    table.insert_or_assign({graph_inputs, index},
                           result.input(index == 0 ? input : input + std::to_string(index)));
  for (int each = 0; each < model.size(); ++each)
    if (each == node)
      add_nested(result, model, node, table);
    else
      add_node(result, model.name_of(each), model, each, table);
  result.output(values_at(model.wiring().outputs, table));
  return result;
}

Graph with_all_nested_layers(Graph model) {
  for (int node = 0; node < model.size();)
    if (has_nested_layers(model, node) && !has_tied_weights(*model[node]))
      model = with_nested_layers(model, node);  // the first layer within is at its place, and looked at next
    else
      ++node;
  return model;
}

}  // namespace troupe::nn
