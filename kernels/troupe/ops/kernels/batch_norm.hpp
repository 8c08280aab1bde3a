#pragma once
#include "troupe/ops/batch_norm.hpp"
#include "troupe/ops/kernels/kernel.hpp"

namespace troupe {

/// x: [batch, channels, size]
struct batch_norm_problem {
  std::int64_t batch = 0, channels = 0, size = 0;
};

/// What troupe/ops/batch_norm.hpp needs from a device. Arguments have been checked; outputs are allocated;
/// tensors may be undefined where they may be there.
struct batch_norm_kernels {
  kernel<void(const batch_norm_problem& problem, const tensor& x, const tensor& weight, const tensor& bias,
              const batch_norm_options& options, tensor& running_mean, tensor& running_variance,
              batch_norm_result& result)>
      forward{"batch_norm"};
  kernel<void(const batch_norm_problem& problem, const tensor& x, const tensor& weight, const tensor& bias,
              const tensor& running_mean, const tensor& running_variance, double epsilon, tensor& y)>
      inference{"batch_norm_inference"};
  kernel<void(const batch_norm_problem& problem, const tensor& dy, const tensor& x, const tensor& weight,
              const tensor& mean, const tensor& rstd, tensor& dx)>
      backward_input{"batch_norm_backward_input"};
  kernel<void(const batch_norm_problem& problem, const tensor& x, const tensor& dy, const tensor& mean,
              const tensor& rstd, tensor& dweight, tensor& dbias, gradient_mode mode)>
      backward_weight{"batch_norm_backward_weight"};
};

}  // namespace troupe
