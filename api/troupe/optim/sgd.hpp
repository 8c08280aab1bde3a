#pragma once
#include "troupe/optim/lr_schedule.hpp"
#include "troupe/optim/optimizer.hpp"

namespace troupe::optim {

struct sgd_options {
  double lr = 1e-3;                ///< learning rate, >= 0
  double momentum = 0;             ///< in [0, 1]; 0 keeps no state
  double weight_decay = 0;         ///< >= 0, added to the gradient, times the weight
  bool nesterov = false;           ///< needs momentum
  lr_schedule schedule = nullptr;  ///< factor of lr per step; null: 1
};

/// Stochastic gradient descent, PyTorch's formulas: optim::SGD({.lr = 0.1, .momentum = 0.9}).
class SGD {
 public:
  /// Throws std::invalid_argument naming the option that is out of its range.
  explicit SGD(sgd_options options = {});
  std::unique_ptr<optimizer_state> operator()(std::vector<named_parameter> parameters) const;
  const sgd_options& options() const { return options_; }

 private:
  sgd_options options_;
};

}  // namespace troupe::optim
