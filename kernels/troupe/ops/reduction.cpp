#include "troupe/ops/reduction.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "troupe/error/errors.hpp"
#include "troupe/ops/arguments.hpp"
#include "troupe/ops/convert.hpp"
#include "troupe/ops/elementwise.hpp"
#include "troupe/ops/kernels/all.hpp"

namespace troupe {
namespace {

int axis_in(std::string_view operation, const tensor& x, int axis) {
  auto rank = x.extents().rank();
  if (axis < -rank || axis >= rank)
    throw_invalid(operation, "an axis of x", std::to_string(axis) + " for " + describe(x));
  return axis < 0 ? axis + rank : axis;
}

/// For each axis of x whether it is reduced.
std::vector<bool> reduced_axes(std::string_view operation, const tensor& x, const std::vector<int>& axes) {
  std::vector<bool> reduced(static_cast<std::size_t>(x.extents().rank()), axes.empty());
  for (auto axis : axes) {
    auto at = static_cast<std::size_t>(axis_in(operation, x, axis));
    if (reduced[at]) throw_invalid(operation, "each axis once", "axis " + std::to_string(axis) + " twice");
    reduced[at] = true;
  }
  return reduced;
}

shape result_shape(const tensor& x, const std::vector<bool>& reduced, bool keep_axes) {
  std::vector<std::int64_t> extents;
  for (std::size_t axis = 0; axis < reduced.size(); ++axis) {
    if (!reduced[axis]) extents.push_back(x.extents()[static_cast<int>(axis)]);
    if (reduced[axis] && keep_axes) extents.push_back(1);
  }
  return shape(std::move(extents));
}

/// Neighbouring axes that are all reduced or all kept count as one.
struct axis_group {
  std::int64_t size = 1;
  bool is_reduced = false;
};

std::vector<axis_group> groups_of(const tensor& x, const std::vector<bool>& reduced) {
  std::vector<axis_group> groups;
  for (std::size_t axis = 0; axis < reduced.size(); ++axis) {
    if (groups.empty() || groups.back().is_reduced != reduced[axis]) groups.push_back({1, reduced[axis]});
    groups.back().size *= x.extents()[static_cast<int>(axis)];
  }
  return groups;
}

/// Reduces one group after the other, the last first; what lies between them is f32.
tensor reduce(std::string_view operation, tensor x, const reduction_options& options,
              reduction_kernels::reduce reduction_kernels::*of, double factor = 1) {
  require_floating(operation, "x", x);
  auto reduced = reduced_axes(operation, x, options.axes);
  auto result = result_shape(x, reduced, options.keep_axes);
  auto groups = groups_of(x, reduced);
  auto type = x.type();
  if (groups.empty()) return x.clone();
  std::int64_t inner = 1;
  while (!groups.empty()) {
    auto group = groups.back();
    groups.pop_back();
    if (!group.is_reduced) {
      inner *= group.size;
      continue;
    }
    std::int64_t outer = 1;
    for (const auto& each : groups) outer *= each.size;
    auto y = tensor::empty({outer, inner}, dtype::f32, x.where());
    (kernels_on(x.where()).reduction.*of)(x.reshape({outer, group.size, inner}), y);
    x = y;
  }
  if (factor != 1) scale(x, static_cast<float>(factor));
  return cast(x, type).reshape(result);
}

}  // namespace

tensor sum(const tensor& x, const reduction_options& options) {
  return reduce("sum", x, options, &reduction_kernels::sum);
}

tensor mean(const tensor& x, const reduction_options& options) {
  require_floating("mean", "x", x);
  auto reduced = reduced_axes("mean", x, options.axes);
  double count = 1;
  for (std::size_t axis = 0; axis < reduced.size(); ++axis)
    if (reduced[axis]) count *= static_cast<double>(x.extents()[static_cast<int>(axis)]);
  return reduce("mean", x, options, &reduction_kernels::sum, 1 / count);
}

tensor max(const tensor& x, const reduction_options& options) {
  return reduce("max", x, options, &reduction_kernels::max);
}

tensor min(const tensor& x, const reduction_options& options) {
  return reduce("min", x, options, &reduction_kernels::min);
}

tensor argmax(const tensor& x, int axis) {
  require_floating("argmax", "x", x);
  auto at = axis_in("argmax", x, axis);
  if (x.extents()[at] == 0) throw_invalid("argmax", "an axis with elements", describe(x));
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < x.extents().rank(); ++i) {
    if (i < at) outer *= x.extents()[i];
    if (i > at) inner *= x.extents()[i];
  }
  auto y = tensor::empty({outer, inner}, dtype::i64, x.where());
  kernels_on(x.where()).reduction.argmax(x.reshape({outer, x.extents()[at], inner}), y);
  return y.reshape(result_shape(x, reduced_axes("argmax", x, {at}), false));
}

double total_sum(const tensor& x) {
  require_floating("total_sum", "x", x);
  return kernels_on(x.where()).reduction.total_sum(x);
}

double global_norm(std::span<const tensor> tensors) {
  double sum = 0;
  for (const auto& each : tensors) {
    require_floating("global_norm", "tensors", each);
    sum += kernels_on(each.where()).reduction.sum_of_squares(each);
  }
  return std::sqrt(sum);
}

double clipping_factor(double norm, double max_norm) {
  if (!(max_norm > 0)) throw_invalid("clip_by_global_norm", "max_norm > 0", std::to_string(max_norm));
  auto factor = max_norm / (norm + 1e-6);
  return std::isfinite(norm) && factor < 1 ? factor : 1;
}

double clip_by_global_norm(std::span<tensor> tensors, double max_norm) {
  auto norm = global_norm(tensors);
  auto factor = clipping_factor(norm, max_norm);
  if (factor == 1) return norm;
  for (const auto& each : tensors) scale(each, static_cast<float>(factor));
  return norm;
}

bool all_finite(const tensor& x) {
  require_floating("all_finite", "x", x);
  return kernels_on(x.where()).reduction.num_non_finite(x) == 0;
}

}  // namespace troupe
