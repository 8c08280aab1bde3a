#pragma once
#include <concepts>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "troupe/nn/child_list.hpp"
#include "troupe/nn/graph_wiring.hpp"
#include "troupe/nn/multi_module.hpp"
#include "troupe/nn/sequential.hpp"

namespace troupe::nn {

/// A value in a Graph, by the name of the node that computes it or of the graph's input. Of a node with
/// several outputs, value[i] is output i.
struct graph_value {
  static constexpr int only_output = -1;

  graph_value(std::string its_process, int its_output = only_output)
      : node(std::move(its_process)), output(its_output) {}
  graph_value(const char* its_process) : node(its_process) {}
  graph_value operator[](int index) const { return {node, index}; }

  std::string node;
  int output = only_output;
};

/// A model of several branches: modules as named nodes, each with the values that it takes.
///
///     nn::Graph model;
///     auto x = model.input();
///     auto a = model.add("conv1", nn::Conv2d(8, 8, 3, {.padding = 1}), x);
///     auto b = model.add("relu", nn::ReLU(), a);
///     model.output(model.add("sum", nn::Add(), b, x));
///
/// Nodes run in the order in which they were added. Parameters are named "conv1.weight" and so on, whatever
/// the partition into stages. A node takes values that were added before it, so there are no cycles; every
/// node must lead to an output. Modules with several inputs or outputs are MultiModules, and so is a Graph,
/// which can be a node of another one. A TiedLinear finds its weight among the nodes before it.
///
/// Gradients of a value that several nodes use are added in a fixed order (graph_segment.hpp).
class Graph : public multi_module_of<Graph> {
 public:
  Graph() = default;
  /// The chain of the children, with their names.
  Graph(Sequential chain);

  /// Adds an input of the graph. Throws std::invalid_argument for a name that is in use, and after output.
  graph_value input(std::string name = "input");
  /// Adds a node and returns its output; `inputs` are values or names. Throws std::invalid_argument, saying
  /// what was expected, for an unknown value, another number of inputs than the module takes, a name that is
  /// in use, a module that the graph has already, and after output.
  graph_value add(std::string name, std::shared_ptr<Module> module, const std::vector<graph_value>& inputs);
  template <std::derived_from<Module> Node>
  graph_value add(std::string name, Node module, const std::vector<graph_value>& inputs) {
    return add(std::move(name), std::make_shared<Node>(std::move(module)), inputs);
  }
  template <std::derived_from<Module> Node, std::convertible_to<graph_value>... Values>
  graph_value add(std::string name, Node module, const Values&... inputs) {
    return add(std::move(name), std::make_shared<Node>(std::move(module)),
               std::vector<graph_value>{inputs...});
  }
  /// Completes the graph. Throws std::invalid_argument for an unknown value, for nodes that lead to no
  /// output, and when called twice.
  void output(const std::vector<graph_value>& values);
  void output(const graph_value& value) { output(std::vector{value}); }

  int num_inputs() const override { return wiring_.num_inputs; }
  /// 0 before output was called.
  int num_outputs() const override { return static_cast<int>(wiring_.outputs.size()); }
  using multi_module_of::operator();
  /// Throws std::logic_error before output was called.
  std::vector<variable> forward_all(const std::vector<variable>& inputs) override;
  void each_child(const child_visitor& visit) override { nodes_.visit(visit); }

  /// The number of nodes.
  int size() const { return nodes_.size(); }
  /// Node `index`, in the order in which they were added. Throws std::out_of_range outside [0, size), as the
  /// functions below do.
  const std::shared_ptr<Module>& operator[](int index) const { return nodes_[index]; }
  const std::string& name_of(int index) const { return nodes_.name_of(index); }
  /// The prefix of the parameter names of node `index`: "conv1."
  std::string prefix_of(int index) const { return nodes_.prefix_of(index); }
  /// The names of the nodes, in order.
  const std::vector<std::string>& names() const { return nodes_.names(); }
  /// The values that node `index` takes, as text: "conv1, split[1]".
  std::string inputs_text(int index) const;
  std::string outputs_text() const;
  const graph_wiring& wiring() const { return wiring_; }

 private:
  void require_incomplete(const char* function) const;
  graph_source find(const char* function, const graph_value& value, const std::string& taker) const;
  void require_all_used() const;
  std::string text_of(const std::vector<graph_source>& sources) const;

  std::vector<std::string> input_names_;
  child_list nodes_;
  graph_wiring wiring_;
};

}  // namespace troupe::nn
