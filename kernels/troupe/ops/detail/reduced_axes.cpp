#include "troupe/ops/detail/reduced_axes.hpp"

#include <string>
#include <utility>

#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

/// One flag for each axis.
using axis_flags = std::vector<bool>;

struct axis_run {
  bool is_reduced;
  std::int64_t extent;
};

/// Merges adjacent axes that are all reduced or all kept; axes of extent 1 match both.
std::vector<axis_run> runs_of(const shape& x, const axis_flags& is_reduced) {
  std::vector<axis_run> runs;
  for (std::size_t axis = 0; axis < is_reduced.size(); ++axis) {
    auto extent = x.extents()[axis];
    if (extent == 1) continue;
    if (runs.empty() || runs.back().is_reduced != is_reduced[axis])
      runs.push_back({is_reduced[axis], extent});
    else
      runs.back().extent *= extent;
  }
  return runs;
}

std::vector<reduced_axis> steps_of(const shape& x, const axis_flags& is_reduced) {
  std::vector<reduced_axis> steps;
  auto runs = runs_of(x, is_reduced);
  std::int64_t inner = 1;
  for (auto at = runs.size(); at-- > 0;) {
    if (!runs[at].is_reduced) {
      inner *= runs[at].extent;
      continue;
    }
    std::int64_t outer = 1;
    for (std::size_t before = 0; before < at; ++before) outer *= runs[before].extent;
    steps.push_back({outer, runs[at].extent, inner});
  }
  if (steps.empty()) steps.push_back({x.num_elements(), 1, 1});
  return steps;
}

reduced_axes worked_out(const shape& x, const axis_flags& is_reduced) {
  reduced_axes result;
  std::vector<std::int64_t> kept, dropped;
  for (std::size_t axis = 0; axis < is_reduced.size(); ++axis) {
    auto extent = x.extents()[axis];
    kept.push_back(is_reduced[axis] ? 1 : extent);
    if (!is_reduced[axis]) dropped.push_back(extent);
    if (is_reduced[axis]) result.num_reduced *= extent;
  }
  result.kept = shape(std::move(kept));
  result.dropped = shape(std::move(dropped));
  result.steps = steps_of(x, is_reduced);
  return result;
}

}  // namespace

reduced_axes axes_of(std::string_view operation, const tensor& x, const reduction_options& options) {
  auto rank = x.shape().rank();
  axis_flags is_reduced(static_cast<std::size_t>(rank), options.axes.empty());
  for (auto axis : options.axes) {
    if (axis < -rank || axis >= rank)
      throw_invalid(operation, "axes of x " + describe(x), "axis " + std::to_string(axis));
    auto at = static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
    if (is_reduced[at]) throw_invalid(operation, "each axis once", "axis " + std::to_string(axis) + " twice");
    is_reduced[at] = true;
  }
  return worked_out(x.shape(), is_reduced);
}

}  // namespace troupe
