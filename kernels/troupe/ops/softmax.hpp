#pragma once
#include "troupe/tensor/tensor.hpp"

namespace troupe {

// Over the last axis: x is [..., C] with C >= 1 in f32, bf16 or f16; results have x's shape and dtype,
// arithmetic and sums are f32. A row with no finite element is NaN. Backward functions take what forward
// returned. Other shapes and dtypes throw std::invalid_argument.

/// y_j = e^(x_j - m) / sum_k e^(x_k - m), with m the row's largest element.
tensor softmax_forward(const tensor& x);

/// dx = y (dy - sum_k dy_k y_k)
tensor softmax_backward(const tensor& dy, const tensor& y);

/// y_j = x_j - m - log(sum_k e^(x_k - m))
tensor log_softmax_forward(const tensor& x);

/// dx = dy - e^y sum_k dy_k
tensor log_softmax_backward(const tensor& dy, const tensor& y);

}  // namespace troupe
