#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "troupe/autograd/operation.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe {

class graph_node;

struct backward_options {
  bool retain_graph = false;  ///< keeps what was recorded, so that backward may run again
  /// Called once for each parameter, as soon as the last operation that adds to its gradient has done so. Not
  /// for leaves, whose gradients the caller finds once backward has returned.
  std::function<void(parameter&)> on_gradient = nullptr;
  /// Called before that, as soon as the first rows of a large gradient are complete
  /// (operation::backward_weight_by_rows); goes with on_gradient.
  rows_listener on_rows = nullptr;
};

/// A value, and what was recorded to make it. A constant (no node) when nothing that leads to it wants a
/// gradient. Copies share both. Variables of one graph belong to one thread at a time.
struct variable {
  tensor value;
  std::shared_ptr<graph_node> node = nullptr;

  bool requires_gradient() const { return node != nullptr; }
  /// Of a leaf: the sum of what backward passes brought; undefined before the first.
  tensor gradient() const;
  /// Adds the gradients of all parameters and leaves this depends on, from this value's own, which may be
  /// undefined for a scalar and then means 1. Throws std::logic_error for a constant, for a graph that
  /// backward has used up, and for a parameter that was written to since forward, and std::invalid_argument
  /// for a gradient of another shape, dtype or device than the value's.
  void backward(const tensor& gradient = {}, const backward_options& options = {}) const;
};

/// An input of which a gradient is wanted.
variable leaf(tensor value);

/// The same value, cut from what was recorded.
variable detach(const variable& from);

/// The result of an operation over `inputs`, whose memory counts as that of activations. What is recorded is
/// kept only if this thread is recording and an input or a parameter wants a gradient.
variable record(tensor value, const std::vector<variable>& inputs, std::unique_ptr<operation> recorded);

/// Whether `record` would keep an operation over these: lets a function save its trouble.
bool would_record(std::initializer_list<const variable*> inputs,
                  std::initializer_list<const parameter*> parameters = {});

}  // namespace troupe
