#pragma once
#include <span>
#include <vector>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

// x of any shape in f32, bf16 or f16; sums are in f32 over blocks of fixed sizes, which are combined in a
// fixed tree, and rounded once at the end. Arguments of other dtypes, axes that are not there or are named
// twice, and tensors of different devices throw std::invalid_argument.

struct reduction_options {
  std::vector<int> axes = {};  ///< none: all; negative axes count from the end
  bool keep_axes = false;      ///< reduced axes stay with extent 1, so that the result broadcasts against x
};

/// In x's dtype. The sum over no elements is 0; the others throw if there is none to reduce.
tensor sum(const tensor& x, const reduction_options& options = {});
tensor mean(const tensor& x, const reduction_options& options = {});
/// NaN where there is one.
tensor max(const tensor& x, const reduction_options& options = {});
tensor min(const tensor& x, const reduction_options& options = {});

/// i64: where along the one axis in `options` the largest element is, or, without axes, where in the
/// flattened x. The first of several; NaN counts as the largest.
tensor argmax(const tensor& x, const reduction_options& options = {});

// Over whole tensors, in f64; several are taken as one long vector.

double total_sum(const tensor& x);

/// The square root of the sum of the squares. Infinite or NaN if an element is.
double global_norm(std::span<const tensor> of);

/// Whether no element is infinite or NaN.
bool all_finite(std::span<const tensor> of);

/// Multiplies all elements, in place, and returns whether all of them are finite afterwards.
bool scale_all(std::span<const tensor> of, double factor);

/// Multiplies the gradients by clipping_factor, in place, and returns the norm that they had. Throws unless
/// max_norm > 0.
double clip_by_global_norm(std::span<const tensor> gradients, double max_norm);

/// max_norm / (norm + 1e-6) if that is below 1 (PyTorch's formula), and else 1; 1 too for a norm that is not
/// finite, since no factor mends that.
double clipping_factor(double norm, double max_norm);

}  // namespace troupe
