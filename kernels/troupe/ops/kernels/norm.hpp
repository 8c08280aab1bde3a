#pragma once
#include "troupe/ops/gradient_mode.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// What troupe/ops/norm.hpp needs from a device: layer normalisation, and with an undefined `mean`, which
/// then counts as 0, RMS normalisation. Arguments have been checked; outputs are allocated.
struct norm_kernels {
  void (*forward)(const tensor& x, const tensor& gamma, const tensor& beta, double eps, tensor& y,
                  tensor& mean, tensor& rstd) = nullptr;
  void (*backward_input)(const tensor& dy, const tensor& x, const tensor& gamma, const tensor& mean,
                         const tensor& rstd, tensor& dx) = nullptr;
  /// At least one of dgamma and dbeta is defined.
  void (*backward_weight)(const tensor& dy, const tensor& x, const tensor& mean, const tensor& rstd,
                          tensor& dgamma, tensor& dbeta, gradient_mode mode) = nullptr;
};

}  // namespace troupe
