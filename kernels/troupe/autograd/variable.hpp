#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "troupe/autograd/operation.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe {

class graph_node;

struct backward_options {
  bool retain_graph = false;  ///< keep the graph, so that backward may run again
  /// Called once for each parameter, as soon as its gradient is complete. Not called for leaves.
  std::function<void(parameter&)> on_gradient = nullptr;
  /// Called before on_gradient, whenever more rows of a large gradient are complete
  /// (operation::backward_weight_by_rows). Requires on_gradient.
  rows_callback on_rows = nullptr;
};

/// A value and its node in the autograd graph. A constant, without node, if no input requires a gradient.
/// Copies share both. Variables of one graph may be used by one thread at a time.
struct variable {
  tensor value;
  std::shared_ptr<graph_node> node = nullptr;

  bool requires_gradient() const { return node != nullptr; }
  /// The accumulated gradient of a leaf; undefined before the first backward pass.
  tensor gradient() const;
  /// Runs backward from this value and accumulates the gradients of all parameters and leaves that it depends
  /// on. `gradient` is this value's gradient; undefined means 1, for scalars only. Throws std::logic_error
  /// for a constant, for a released graph, and for a parameter that has changed since forward, and
  /// std::invalid_argument if the gradient's shape, dtype or device differs from the value's.
  void backward(const tensor& gradient = {}, const backward_options& options = {}) const;
};

/// An input that requires a gradient.
variable leaf(tensor value);

/// The same value as a constant.
variable detach(const variable& from);

/// Returns the result of an operation on `inputs`; its memory is counted as activations. Keeps `recorded`
/// only if is_grad_enabled() and an input or parameter requires a gradient.
variable record(tensor value, const std::vector<variable>& inputs, std::unique_ptr<operation> recorded);

/// Whether `record` would keep an operation on these; lets a function skip work that only backward needs.
bool would_record(std::initializer_list<const variable*> inputs,
                  std::initializer_list<const parameter*> parameters = {});

}  // namespace troupe
