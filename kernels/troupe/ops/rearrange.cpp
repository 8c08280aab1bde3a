#include "troupe/ops/rearrange.hpp"

#include <numeric>
#include <string>

#include "troupe/error/errors.hpp"
#include "troupe/ops/detail/arguments.hpp"
#include "troupe/ops/kernels/all.hpp"

namespace troupe {
namespace {

void require_defined(std::string_view operation, const tensor& x) {
  if (!x.defined()) throw_invalid(operation, "a defined tensor", describe(x));
}

int axis_of(std::string_view operation, const shape& extents, int axis) {
  if (axis < -extents.rank() || axis >= extents.rank())
    throw_invalid(operation, "an axis of " + to_string(extents), std::to_string(axis));
  return axis < 0 ? axis + extents.rank() : axis;
}

shape with_extent(const shape& from, int axis, std::int64_t extent) {
  auto extents = from.extents();
  extents[static_cast<std::size_t>(axis)] = extent;
  return shape(std::move(extents));
}

/// The same elements with the axes before `axis` as one and those after it as one.
tensor around(const tensor& x, int axis) {
  std::int64_t before = 1, after = 1;
  for (int i = 0; i < axis; ++i) before *= x.shape()[i];
  for (int i = axis + 1; i < x.shape().rank(); ++i) after *= x.shape()[i];
  return x.reshape({before, x.shape()[axis], after});
}

void require_range(std::string_view operation, const shape& extents, int axis, std::int64_t first,
                   std::int64_t count) {
  if (first >= 0 && count >= 0 && first <= extents[axis] - count) return;
  throw_invalid(operation, "a range of axis " + std::to_string(axis) + " of " + to_string(extents),
                "[" + std::to_string(first) + ", " + std::to_string(first + count) + ")");
}

void copy_range(const tensor& from, std::int64_t from_first, const tensor& to, std::int64_t to_first,
                int axis, std::int64_t count) {
  auto target = around(to, axis);
  kernels_on(to.device()).rearrange.copy_range(around(from, axis), from_first, target, to_first, count);
}

}  // namespace

tensor concat(std::span<const tensor> parts, int axis) {
  if (parts.empty()) throw_invalid("concat", "at least one part", "none");
  for (const auto& part : parts) require_defined("concat", part);
  const auto& model = parts.front();
  auto at = axis_of("concat", model.shape(), axis);
  std::int64_t total = 0;
  for (const auto& part : parts) {
    if (part.shape().rank() != model.shape().rank() || part.dtype() != model.dtype() ||
        part.device() != model.device() ||
        with_extent(part.shape(), at, 0) != with_extent(model.shape(), at, 0))
      throw_invalid("concat", "parts like " + describe(model) + " except for axis " + std::to_string(at),
                    describe(part));
    total += part.shape()[at];
  }
  auto result = tensor::empty(with_extent(model.shape(), at, total), model.dtype(), model.device());
  std::vector<tensor> around_axis;
  for (const auto& part : parts) around_axis.push_back(around(part, at));
  auto target = around(result, at);
  kernels_on(result.device()).rearrange.concat(around_axis, target);
  return result;
}

std::vector<tensor> split(const tensor& x, int axis, std::span<const std::int64_t> counts) {
  require_defined("split", x);
  auto at = axis_of("split", x.shape(), axis);
  auto total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  if (total != x.shape()[at])
    throw_invalid("split", "counts that add up to axis " + std::to_string(at) + " of " + describe(x),
                  std::to_string(total));
  std::vector<tensor> parts;
  std::int64_t first = 0;
  for (auto count : counts) {
    parts.push_back(slice(x, at, first, count));
    first += count;
  }
  return parts;
}

tensor slice(const tensor& x, int axis, std::int64_t first, std::int64_t count) {
  require_defined("slice", x);
  auto at = axis_of("slice", x.shape(), axis);
  require_range("slice", x.shape(), at, first, count);
  auto y = tensor::empty(with_extent(x.shape(), at, count), x.dtype(), x.device());
  copy_range(x, first, y, 0, at, count);
  return y;
}

tensor slice_backward(const tensor& dy, const shape& extents, int axis, std::int64_t first) {
  require_defined("slice_backward", dy);
  auto at = axis_of("slice_backward", extents, axis);
  if (dy.shape().rank() != extents.rank() || with_extent(dy.shape(), at, 0) != with_extent(extents, at, 0))
    throw_invalid("slice_backward",
                  "dy like " + to_string(extents) + " except for axis " + std::to_string(at), describe(dy));
  require_range("slice_backward", extents, at, first, dy.shape()[at]);
  auto dx = tensor::zeros(extents, dy.dtype(), dy.device());
  copy_range(dy, 0, dx, first, at, dy.shape()[at]);
  return dx;
}

tensor transpose(const tensor& x, const std::vector<int>& axes) {
  require_defined("transpose", x);
  auto rank = static_cast<std::size_t>(x.shape().rank());
  std::vector<int> from;
  std::vector<bool> is_taken(rank);
  std::vector<std::int64_t> extents;
  for (auto axis : axes) {
    auto at = axis_of("transpose", x.shape(), axis);
    if (is_taken[static_cast<std::size_t>(at)])
      throw_invalid("transpose", "each axis once", "axis " + std::to_string(axis) + " twice");
    is_taken[static_cast<std::size_t>(at)] = true;
    from.push_back(at);
    extents.push_back(x.shape()[at]);
  }
  if (from.size() != rank)
    throw_invalid("transpose", "all axes of " + describe(x), std::to_string(from.size()) + " of them");
  auto y = tensor::empty(shape(std::move(extents)), x.dtype(), x.device());
  if (y.num_elements() > 0) kernels_on(x.device()).rearrange.transpose(x, from, y);
  return y;
}

tensor transpose(const tensor& x) {
  require_defined("transpose", x);
  auto rank = x.shape().rank();
  if (rank < 2) throw_invalid("transpose", "x with at least two axes", describe(x));
  std::vector<int> axes(static_cast<std::size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  return transpose(x, axes);
}

std::vector<int> inverse_permutation(const std::vector<int>& axes) {
  std::vector<int> inverse(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i)
    inverse.at(static_cast<std::size_t>(axes[i])) = static_cast<int>(i);
  return inverse;
}

}  // namespace troupe
