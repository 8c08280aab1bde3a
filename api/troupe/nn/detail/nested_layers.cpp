#include "troupe/nn/detail/nested_layers.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <typeinfo>

#include "troupe/error/errors.hpp"

namespace troupe::nn::detail {
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

/// A clone belongs to no Sequential or Graph, and lists its own copy of a tied weight.
bool has_tied_weights(Module& module) {
  bool found = false;
  module.clone()->each_parameter([&found](parameter& each) { found = found || !each.tied_to.empty(); });
  module.each_child(
      [&found](const std::string&, Module& child) { found = found || has_tied_weights(child); });
  return found;
}

/// Whether gradients are added in the same order without the graph around its nodes. A graph is refused
/// - that gives out an input, one value twice, or a value that is used within: the gradients of what goes out
///   and of what stays are added up apart;
/// - that takes a value which goes elsewhere too, and uses it several times: these gradients are added up
///   before.
bool adds_gradients_in_order(const Graph& model, int node, const Graph& inner) {
  auto uses = uses_of(model.wiring()), uses_within = uses_of(inner.wiring());
  std::set<graph_source> outputs;
  for (const auto& each : inner.wiring().outputs)
    if (each.node == graph_inputs || uses_within.contains(each) || !outputs.insert(each).second) return false;
  const auto& inputs = model.wiring().at(node).inputs;
  for (std::size_t input = 0; input < inputs.size(); ++input) {
    auto uses_inside = uses_within.at({graph_inputs, static_cast<int>(input)}).size();
    if (uses.at(inputs[input]).size() > 1 &&
        (uses_inside > 1 || std::ranges::count(inputs, inputs[input]) > 1))
      return false;
  }
  return true;
}

/// Why the children of a node cannot take its place; empty: they can.
std::string objection(const Graph& model, int node) {
  auto& module = *model[node];
  // A class derived from them may compute otherwise.
  const auto* chain =
      typeid(module) == typeid(Sequential) ? &static_cast<const Sequential&>(module) : nullptr;
  const auto* inner = typeid(module) == typeid(Graph) ? &static_cast<const Graph&>(module) : nullptr;
  if (!inner && (!chain || chain->size() == 0))
    return "it is no nn::Sequential or nn::Graph with layers within";
  if (has_tied_weights(module))
    return "a tied weight within, as of nn::TiedLinear, is found by a name within";
  if (inner && !adds_gradients_in_order(model, node, *inner))
    return "gradients would be added in another order, because it uses a value several times that is used "
           "elsewhere too, or gives out a value that it was given or uses within";
  return {};
}

std::string unused_input_name(const Graph& model) {
  std::string name = "input";
  while (std::ranges::count(model.names(), name) > 0) name += "_";
  return name;
}

}  // namespace

Graph with_nested_layers(const Graph& model, int node) {
  if (auto why = objection(model, node); !why.empty())
    throw bad_input("layer " + model.name_of(node) + " cannot be taken apart: " + why + ". Place " +
                    model.name_of(node) + " as a whole");
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
    if (objection(model, node).empty())
      model = with_nested_layers(model, node);  // the first layer within is at its place, and looked at next
    else
      ++node;
  return model;
}

}  // namespace troupe::nn::detail
