#pragma once
#include <cstdint>
#include <span>

#include "troupe/ops/adam_step.hpp"

namespace troupe {

struct lamb_step_options {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  double weight_decay = 0;
};

/// Step `step`, from 0, of LAMB (You et al., "Large batch optimization for deep learning", 2020, algorithm 2,
/// with phi(z) = z), in place. With t = step + 1, g the gradient:
///   m += (1 - beta1) (g - m);  v = beta2 v + (1 - beta2) g^2
///   u = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon) + weight_decay w
///   w -= learning_rate |w| / |u| u
/// where |w| and |u| are over the whole tensor, summed in f64, and the quotient is 1 if one of them is 0.
/// Slots, errors and the gradient as in adam_step; two passes over memory.
void lamb_step(std::span<const adam_slot> slots, std::uint64_t step, const lamb_step_options& options);

}  // namespace troupe
