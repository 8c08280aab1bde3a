#pragma once
#include <span>
#include <vector>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

struct reduction_options {
  /// The axes to reduce, negative ones from the end, each at most once; empty: all.
  std::vector<int> axes = {};
  /// The result keeps reduced axes with extent 1, so that it broadcasts against x.
  bool keep_axes = false;
};

// x is f32, bf16 or f16 of any shape; results have its dtype. Sums are f32 and combine in a tree that depends
// on the shape alone. Throws std::invalid_argument for other dtypes and for axes that are not there.

tensor sum(const tensor& x, const reduction_options& options = {});
/// NaN where there is nothing to take the mean of.
tensor mean(const tensor& x, const reduction_options& options = {});
/// The largest element, or NaN if one is; -infinity of none.
tensor max(const tensor& x, const reduction_options& options = {});
/// The smallest element, or NaN if one is; infinity of none.
tensor min(const tensor& x, const reduction_options& options = {});

/// The index along `axis` of the largest element, i64 without that axis; of equal elements the first, and NaN
/// is larger than all numbers. Throws std::invalid_argument for an axis without elements.
tensor argmax(const tensor& x, int axis);

/// The sum of all elements, blocks of which add up in f64.
double total_sum(const tensor& x);

/// sqrt(the sum of the squares of all elements of all tensors). Infinite if a square overflows f32.
double global_norm(std::span<const tensor> tensors);

/// Scales all tensors by max_norm / (norm + 1e-6) if that is below 1 (PyTorch's formula); returns the norm
/// from before, infinite or NaN if an element is, when the tensors stay as they are. Throws
/// std::invalid_argument unless max_norm > 0.
double clip_by_global_norm(std::span<tensor> tensors, double max_norm);

/// What clip_by_global_norm scales by, for those who fold it into the optimizer's step: 1 for a norm that is
/// small enough or not finite.
double clipping_factor(double norm, double max_norm);

/// Whether no element is infinite or NaN.
bool all_finite(const tensor& x);

}  // namespace troupe
