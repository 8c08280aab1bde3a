#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "troupe/autograd/parameter.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// Hears that the first `count` rows of a parameter's gradient are complete.
using rows_listener = std::function<void(parameter&, std::int64_t count)>;

/// One recorded operation: holds what its backward needs until it is destroyed. Users derive their own and
/// pass them to `record`. It has one output; one of several parts is taken apart by slice or split.
class operation {
 public:
  virtual ~operation() = default;
  /// The gradients with respect to the recorded inputs, in order, from that of the output: each of its
  /// input's shape, dtype and device, or undefined, which counts as zeros. Backward throws
  /// std::invalid_argument for others. Whoever records an operation that reads a parameter's value holds it
  /// as a used_parameter.
  virtual std::vector<tensor> backward_input(const tensor& output_gradient) = 0;
  /// Adds the gradients of the operation's parameters. Called after backward_input, possibly much later.
  virtual void backward_weight(const tensor& /*output_gradient*/) {}
  /// Whether backward_weight may also be called before backward_input, of which it needs nothing: its
  /// gradients can then be on their way to other processes while that computes.
  virtual bool weights_may_come_first() const { return false; }
  /// backward_weight for whoever can use the first rows of a large gradient before the others are there,
  /// which may cost a little and change bits: an operation may compute it in blocks, a pure function of the
  /// shapes.
  virtual void backward_weight_by_rows(const tensor& output_gradient, const rows_listener& /*on_rows*/) {
    backward_weight(output_gradient);
  }
  /// The parameters that backward_weight adds to. None: it is not called.
  virtual std::vector<parameter*> parameters() const { return {}; }
  /// Gives up what only backward_input needed; backward_weight may still come.
  virtual void release_inputs() {}
};

}  // namespace troupe
