#pragma once
#include <span>
#include <vector>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

// Copies of elements to other places, of any dtype; every result is contiguous. Negative axes count from the
// end. Axes and ranges that are not there throw std::invalid_argument.

/// The parts one after the other along `axis`; they must agree in dtype, device and all other extents. Throws
/// if there are none.
tensor concat(std::span<const tensor> parts, int axis);

/// The inverse of concat: parts of the extents `counts`, which must add up to x's.
std::vector<tensor> split(const tensor& x, int axis, std::span<const std::int64_t> counts);

/// Elements [first, first + count) along `axis`.
tensor slice(const tensor& x, int axis, std::int64_t first, std::int64_t count);

/// The gradient of slice: zeros of the shape `extents` with `dy` from `first` on along `axis`.
tensor slice_backward(const tensor& dy, const shape& extents, int axis, std::int64_t first);

/// Axis i of the result is axis axes[i] of x, which is a permutation of all axes.
tensor transpose(const tensor& x, const std::vector<int>& axes);

/// The last two axes swapped: [..., m, n] to [..., n, m].
tensor transpose(const tensor& x);

/// The permutation that undoes transpose by `axes`, which are not negative.
std::vector<int> inverse_permutation(const std::vector<int>& axes);

}  // namespace troupe
