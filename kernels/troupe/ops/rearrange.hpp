#pragma once
#include <span>
#include <vector>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

// Concatenation, slices and transposition by copying, for any dtype; every result is contiguous. Negative
// axes count from the end. Axes and ranges out of bounds throw std::invalid_argument.

/// Concatenates the parts along `axis`; dtype, device and all other extents must be equal. Throws if there
/// are no parts.
tensor concat(std::span<const tensor> parts, int axis);

/// The inverse of concat: parts of the extents `counts`, which must add up to x's.
std::vector<tensor> split(const tensor& x, int axis, std::span<const std::int64_t> counts);

/// Elements [first, first + count) along `axis`.
tensor slice(const tensor& x, int axis, std::int64_t first, std::int64_t count);

/// The gradient of slice: zeros of shape `extents` with `dy` at [first, ...) along `axis`.
tensor slice_backward(const tensor& dy, const shape& extents, int axis, std::int64_t first);

/// Axis i of the result is axis axes[i] of x, which is a permutation of all axes.
tensor transpose(const tensor& x, const std::vector<int>& axes);

/// The last two axes swapped: [..., m, n] to [..., n, m].
tensor transpose(const tensor& x);

/// The inverse of the permutation `axes`; `axes` must not be negative.
std::vector<int> inverse_permutation(const std::vector<int>& axes);

}  // namespace troupe
