#pragma once
#include "troupe/optim/lr_schedule.hpp"
#include "troupe/optim/optimizer.hpp"

namespace troupe::optim {

struct lamb_options {
  double lr = 1e-3;                ///< learning rate, >= 0
  double beta1 = 0.9;              ///< decay of the mean of gradients, in [0, 1)
  double beta2 = 0.999;            ///< decay of the mean of their squares, in [0, 1)
  double eps = 1e-6;               ///< added to the denominator, >= 0
  double weight_decay = 1e-2;      ///< >= 0, added to the update, times the weight
  lr_schedule schedule = nullptr;  ///< factor of lr per step; null: 1
};

/// LAMB, for large batches: Adam's direction with weight decay, scaled in each tensor by |w| / |update|
/// (troupe/ops/lamb_step.hpp): optim::LAMB({.lr = 4e-3}). The norms are over each parameter as it is stored,
/// so a sharded parameter steps differently from an unsharded one.
class LAMB {
 public:
  /// Throws std::invalid_argument naming the option that is out of its range.
  explicit LAMB(lamb_options options = {});
  std::unique_ptr<optimizer_state> operator()(std::vector<named_parameter> parameters) const;
  const lamb_options& options() const { return options_; }

 private:
  lamb_options options_;
};

}  // namespace troupe::optim
