#pragma once

#include <string_view>

#include "troupe/ops/gradient_mode.hpp"
#include "troupe/ops/kernels/kernel.hpp"
#include "troupe/ops/rows.hpp"

namespace troupe {

/// What troupe/ops/rows.hpp and troupe/ops/embedding.hpp need from a device. Shapes and dtypes have been
/// checked, outputs are allocated; the kernels check the range of the indices, and report errors as
/// `operation`.
struct row_kernels {
  kernel<void(std::string_view operation, const tensor& values, const tensor& indices, tensor& out)> gather{
      "gather"};
  kernel<void(std::string_view operation, const tensor& indices, const tensor& rows, tensor& sum,
              gradient_mode mode)>
      scatter_add{"scatter_add"};
};

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

/// What troupe/ops/softmax.hpp needs from a device. Arguments have been checked; outputs are allocated.
struct softmax_kernels {
  using forward = kernel<void(const tensor& x, tensor& y)>;
  using backward = kernel<void(const tensor& dy, const tensor& y, tensor& dx)>;

  forward softmax_forward{"softmax"};
  backward softmax_backward{"softmax_backward"};
  forward log_softmax_forward{"log_softmax"};
  backward log_softmax_backward{"log_softmax_backward"};
};

/// What troupe/ops/top_k.hpp needs from a device. Arguments have been checked; outputs are allocated and not
/// empty.
struct top_k_kernels {
  kernel<void(const tensor& x, tensor& values, tensor& indices)> select{"top_k"};
};

}  // namespace troupe
