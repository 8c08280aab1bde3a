#pragma once
#include "troupe/ops/gradient_mode.hpp"
#include "troupe/ops/kernels/kernel.hpp"

namespace troupe {

/// What troupe/ops/norm.hpp needs from a device: layer normalisation, and with an undefined `mean`, which
/// then counts as 0, RMS normalisation. Arguments have been checked; outputs are allocated.
struct norm_kernels {
  kernel<void(const tensor& x, const tensor& gamma, const tensor& beta, double eps, tensor& y, tensor& mean,
              tensor& rstd)>
      forward{"layer_norm"};
  kernel<void(const tensor& dy, const tensor& x, const tensor& gamma, const tensor& mean, const tensor& rstd,
              tensor& dx)>
      backward_input{"layer_norm_backward_input"};
  /// At least one of dgamma and dbeta is defined.
  kernel<void(const tensor& dy, const tensor& x, const tensor& mean, const tensor& rstd, tensor& dgamma,
              tensor& dbeta, gradient_mode mode)>
      backward_weight{"layer_norm_backward_weight"};
};

}  // namespace troupe
