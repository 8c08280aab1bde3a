#pragma once
#include <memory>
#include <vector>

#include "troupe/autograd/variable.hpp"

namespace troupe {

/// One recorded operation: holds what its backward needs and gives it up as soon as that is done.
class operation {
 public:
  virtual ~operation() = default;
  /// The gradients with respect to the recorded inputs, in order, from that of the output. One for an input
  /// that needs none may be undefined. Keeps what backward_weight needs and releases everything else.
  virtual std::vector<tensor> backward_input(tensor output_gradient) = 0;
  /// Adds the gradients of the operation's parameters. Called once, after backward_input.
  virtual void backward_weight() {}
  virtual bool has_parameters() const { return false; }
};

/// What one forward pass recorded, from one input to the value that was recorded last.
///
/// Backward visits the nodes in reverse order: for input gradients first and weight gradients later, or both
/// node by node; either way gives the same bits. A tape serves one pass; `reset` makes it new. It is not
/// thread-safe, and it stays where it is, since variables point to it.
class tape {
 public:
  tape() = default;
  tape(const tape&) = delete;
  tape& operator=(const tape&) = delete;

  enum class input_gradient { wanted, unwanted };
  /// Starts the tape with its input. Throws std::logic_error if it has started.
  variable start(tensor input, input_gradient wanted);

  /// Adds an operation over earlier variables of this tape, at least one. Throws std::invalid_argument if
  /// one of them is of another tape.
  variable record(tensor value, const std::vector<variable>& inputs, std::unique_ptr<operation> recorded);

  /// Whether backward must compute a gradient for `value`.
  bool needs_gradient(const variable& value) const;

  /// The gradient of the input, undefined if unwanted, from that of the last value; a scalar loss takes an
  /// undefined one, meaning 1. Throws std::logic_error if the tape has not started or ran before.
  tensor backward_input(tensor output_gradient);
  /// Adds the weight gradients, last operation first, and releases everything. Throws std::logic_error unless
  /// backward_input ran before.
  void backward_weight();
  /// Both, operation by operation, so that less is held at a time.
  tensor backward(tensor output_gradient);

  void reset();

 private:
  struct node {
    std::unique_ptr<operation> recorded;  // none for the input
    std::vector<int> inputs;
    bool needs_gradient = false;
    tensor gradient;
  };
  enum class phase { empty, recording, input_gradients_done };
  enum class weights { later, at_once };

  tensor run_backward(tensor output_gradient, weights when);
  void pass_on(node& from, tensor gradient);

  std::vector<node> nodes_;
  phase phase_ = phase::empty;
};

}  // namespace troupe
