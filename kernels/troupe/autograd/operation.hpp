#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "troupe/autograd/parameter.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// Called when the first `count` rows of a parameter's gradient are complete.
using rows_callback = std::function<void(parameter&, std::int64_t count)>;

/// A recorded operation (PyTorch's autograd::Node): owns what its backward needs. Users derive their own and
/// pass them to `record`. An operation has one output; split several outputs with slice or split.
class operation {
 public:
  virtual ~operation() = default;
  /// Returns the gradients of the recorded inputs, in order, from the gradient of the output. Each has its
  /// input's shape, dtype and device, or is undefined, which counts as zeros; otherwise backward throws
  /// std::invalid_argument. An operation whose backward reads a parameter's value stores it as a
  /// saved_parameter.
  virtual std::vector<tensor> backward_input(const tensor& output_gradient) = 0;
  /// Adds the gradients of the operation's parameters. Called after backward_input, possibly much later, when
  /// parameters may be detached: it must not read their values.
  virtual void backward_weight(const tensor& /*output_gradient*/) {}
  /// Whether backward_weight may be called before backward_input. Communication of the weight gradients then
  /// overlaps with the computation of the input gradients.
  virtual bool can_run_weight_first() const { return false; }
  /// backward_weight in blocks of rows, so that communication of the first rows overlaps with the computation
  /// of the others. May be slightly slower and give other bits than backward_weight; the blocks depend only
  /// on the shapes.
  virtual void backward_weight_by_rows(const tensor& output_gradient, const rows_callback& /*on_rows*/) {
    backward_weight(output_gradient);
  }
  /// The parameters to which backward_weight adds; if empty, it is not called.
  virtual std::vector<parameter*> parameters() const { return {}; }
  /// Releases what only backward_input needs; backward_weight may still be called.
  virtual void release_inputs() {}
};

}  // namespace troupe
