#pragma once
#include "troupe/ops/kernels/kernel.hpp"

namespace troupe {

/// What troupe/ops/mse_loss.hpp needs from a device. Arguments have been checked; outputs are allocated.
struct mse_loss_kernels {
  kernel<double(const tensor& prediction, const tensor& target)> forward{"mse_loss"};
  /// gradient = factor * (prediction - target)
  kernel<void(const tensor& prediction, const tensor& target, float factor, tensor& gradient)> backward{
      "mse_loss_backward"};
};

}  // namespace troupe
