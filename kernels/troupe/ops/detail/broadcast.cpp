#include "troupe/ops/detail/broadcast.hpp"

#include <algorithm>
#include <string>

#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

/// The extent of the axis `from_end` before the last; 1 if there is none.
std::int64_t extent_at(const shape& extents, int from_end) {
  return from_end < extents.rank() ? extents[extents.rank() - 1 - from_end] : 1;
}

/// Whether every operand is contiguous over `outer` and `inner`, so that the axes can be merged.
bool are_one(const broadcast_plan::axis& outer, const broadcast_plan::axis& inner) {
  for (std::size_t i = 0; i < broadcast_plan::max_operands; ++i)
    if (outer.strides[i] != inner.strides[i] * inner.extent) return false;
  return true;
}

}  // namespace

shape broadcast_shape(std::string_view operation, const shape& a, const shape& b) {
  std::vector<std::int64_t> extents(static_cast<std::size_t>(std::max(a.rank(), b.rank())));
  for (int i = 0; i < static_cast<int>(extents.size()); ++i) {
    auto left = extent_at(a, i), right = extent_at(b, i);
    if (left != right && left != 1 && right != 1)
      throw_invalid(operation, "shapes that broadcast", to_string(a) + " and " + to_string(b));
    extents[extents.size() - 1 - static_cast<std::size_t>(i)] = left == 1 ? right : left;
  }
  return shape(std::move(extents));
}

broadcast_plan plan_broadcast(const shape& result, const std::vector<shape>& operands) {
  broadcast_plan plan;
  std::vector<broadcast_plan::axis> axes;  // innermost first
  broadcast_plan::offsets steps{};
  for (std::size_t i = 0; i < operands.size(); ++i) steps[i] = 1;
  for (int from_end = 0; from_end < result.rank(); ++from_end) {
    broadcast_plan::axis next{extent_at(result, from_end), {}};
    if (next.extent == 1) continue;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (extent_at(operands[i], from_end) == 1) continue;
      next.strides[i] = steps[i];
      steps[i] *= next.extent;
    }
    if (!axes.empty() && are_one(next, axes.back()))
      axes.back().extent *= next.extent;
    else
      axes.push_back(next);
  }
  if (!axes.empty()) plan.run = axes.front();
  plan.outer.assign(axes.rbegin(), axes.rend() - (axes.empty() ? 0 : 1));
  return plan;
}

std::int64_t broadcast_plan::num_runs() const {
  std::int64_t runs = 1;
  for (const auto& axis : outer) runs *= axis.extent;
  return runs;
}

broadcast_plan::offsets broadcast_plan::begin_of(std::int64_t index) const {
  offsets begin{};
  for (auto axis = outer.rbegin(); axis != outer.rend(); ++axis) {
    auto next = index / axis->extent, at = index - next * axis->extent;  // divisions are what takes time here
    for (std::size_t i = 0; i < max_operands; ++i) begin[i] += at * axis->strides[i];
    index = next;
  }
  return begin;
}

}  // namespace troupe
