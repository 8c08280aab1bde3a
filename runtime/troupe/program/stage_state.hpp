#pragma once
#include <vector>

#include "troupe/contents/tensor_contents.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::program {

/// What of a stage is copied, written and restored. Asked for at a flush.
class stage_state {
 public:
  virtual ~stage_state() = default;

  /// Live handles to all that a snapshot must hold (parameters and optimizer state), by unique name. Of a
  /// stage on a GPU those of parameters() and optimizer_state() are copied while forwards and backwards of
  /// the next step run: only apply and take_sums over dp may change their elements.
  /// Parameters come first, in name order; names do not depend on how the model was cut. What several stages
  /// hold alike (a tied weight) has one name and is in the state of each.
  virtual std::vector<named_tensor> state() = 0;
  /// [state] Which elements of the model's tensors each of these has: some, if slices or shards hold the
  /// others. In this form they are copied and written, and loaded into any other layout. The default says all
  /// elements.
  virtual std::vector<tensor_contents> contents();
  /// What of `state` the optimizer keeps, which job_options::reset_optimizer lets begin anew.
  virtual std::vector<named_tensor> optimizer_state() { return {}; }
  /// Live handles to the parameters of `state` alone, in name order. Each parameter of the model is one
  /// stage's.
  virtual std::vector<named_tensor> parameters() = 0;
  /// The same with what else of `state` belongs to a trained model, such as running means.
  virtual std::vector<named_tensor> weights() { return parameters(); }
  /// Copies `saved`, in the form of `contents`, into the state. Throws std::runtime_error naming what is
  /// missing, unknown or of another shape.
  virtual void load_state(const std::vector<named_tensor>& saved) = 0;
};

}  // namespace troupe::program
