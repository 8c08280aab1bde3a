#pragma once
#include "troupe/optim/lr_schedule.hpp"
#include "troupe/optim/optimizer.hpp"

namespace troupe::optim {

struct adam_options {
  double lr = 1e-3;                ///< learning rate, >= 0
  double beta1 = 0.9;              ///< decay of the mean of gradients, in [0, 1)
  double beta2 = 0.999;            ///< decay of the mean of their squares, in [0, 1)
  double eps = 1e-8;               ///< added to the denominator, >= 0
  double weight_decay = 0;         ///< >= 0, added to the gradient, times the weight
  lr_schedule schedule = nullptr;  ///< factor of lr per step; null: 1
};

/// Adam, PyTorch's formulas: optim::Adam({.lr = 1e-3}).
class Adam {
 public:
  /// Throws std::invalid_argument naming the option that is out of its range.
  explicit Adam(adam_options options = {});
  std::unique_ptr<optimizer_state> operator()(std::vector<named_parameter> parameters) const;
  const adam_options& options() const { return options_; }

 private:
  adam_options options_;
};

struct adamw_options {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;  ///< >= 0; each step the weight shrinks by lr times this
  lr_schedule schedule = nullptr;
};

/// Adam with decoupled weight decay; otherwise as Adam.
class AdamW {
 public:
  explicit AdamW(adamw_options options = {});
  std::unique_ptr<optimizer_state> operator()(std::vector<named_parameter> parameters) const;
  const adamw_options& options() const { return options_; }

 private:
  adamw_options options_;
};

}  // namespace troupe::optim
