#pragma once

#include "troupe/ops/cross_entropy.hpp"
#include "troupe/ops/kernels/kernel.hpp"

namespace troupe {

/// What troupe/ops/cross_entropy.hpp needs from a device. Arguments have been checked except for the labels'
/// range; outputs are allocated.
struct cross_entropy_kernels {
  /// Writes all of `result`, whose tensors are allocated.
  kernel<void(const tensor& logits, const tensor& labels, const cross_entropy_options& options,
              cross_entropy_result& result)>
      forward{"cross_entropy"};
  kernel<void(const tensor& logits, const tensor& labels, const tensor& log_sum_exp, double scale,
              const cross_entropy_options& options, tensor& gradient)>
      backward{"cross_entropy_backward"};
};

/// Throws the std::invalid_argument of a label outside [0, num_classes).
[[noreturn]] void throw_label_out_of_range(std::int64_t label, std::int64_t sample, std::int64_t num_classes);

/// What troupe/ops/mse_loss.hpp needs from a device. Arguments have been checked; outputs are allocated.
struct mse_loss_kernels {
  kernel<double(const tensor& prediction, const tensor& target)> forward{"mse_loss"};
  /// gradient = factor * (prediction - target)
  kernel<void(const tensor& prediction, const tensor& target, float factor, tensor& gradient)> backward{
      "mse_loss_backward"};
};

}  // namespace troupe
