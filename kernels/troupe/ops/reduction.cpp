#include "troupe/ops/reduction.hpp"

#include <cmath>
#include <string>

#include "troupe/error/errors.hpp"
#include "troupe/ops/detail/arguments.hpp"
#include "troupe/ops/detail/reduced_axes.hpp"
#include "troupe/ops/kernels/all.hpp"

namespace troupe {
namespace {

const reduction_kernels& kernels_for(const tensor& x) { return kernels_on(x.device()).reduction; }

void require_elements(std::string_view operation, const tensor& x, const reduced_axes& axes) {
  if (axes.num_reduced > 0) return;
  throw_invalid(operation, "at least one element to reduce", describe(x));
}

/// Runs one reduction per group of adjacent axes, innermost first: `run(x, along, y, is_last)`. Intermediate
/// results are f32.
template <class Run>
tensor reduce(const tensor& x, const reduced_axes& axes, bool keep_axes, const Run& run) {
  auto from = x;
  for (std::size_t i = 0; i < axes.steps.size(); ++i) {
    const auto& along = axes.steps[i];
    auto is_last = i + 1 == axes.steps.size();
    auto y = tensor::empty({along.outer, along.inner}, is_last ? x.dtype() : dtype::f32, x.device());
    if (y.num_elements() > 0) run(from, along, y, is_last);
    from = y;
  }
  return from.reshape(keep_axes ? axes.kept : axes.dropped);
}

tensor scaled_sum(const tensor& x, const reduced_axes& axes, bool keep_axes, double factor) {
  if (axes.num_reduced == 0)
    return tensor::zeros(keep_axes ? axes.kept : axes.dropped, x.dtype(), x.device());
  auto run = [&](const tensor& from, const reduced_axis& along, tensor& y, bool is_last) {
    kernels_for(x).sum(from, along, is_last ? static_cast<float>(factor) : 1, y);
  };
  return reduce(x, axes, keep_axes, run);
}

tensor extreme(std::string_view operation, const tensor& x, const reduction_options& options,
               reduction_kernels::reduce reduction_kernels::*entry) {
  require_floating(operation, "x", x);
  auto axes = axes_of(operation, x, options);
  require_elements(operation, x, axes);
  return reduce(x, axes, options.keep_axes,
                [&](const tensor& from, const reduced_axis& along, tensor& y, bool) {
                  (kernels_for(x).*entry)(from, along, y);
                });
}

void require_together(std::string_view operation, std::span<const tensor> tensors) {
  for (const auto& each : tensors) {
    require_floating(operation, "elements", each);
    require_on(operation, "elements", each, tensors.front().device());
  }
}

}  // namespace

tensor sum(const tensor& x, const reduction_options& options) {
  require_floating("sum", "x", x);
  return scaled_sum(x, axes_of("sum", x, options), options.keep_axes, 1);
}

tensor mean(const tensor& x, const reduction_options& options) {
  require_floating("mean", "x", x);
  auto axes = axes_of("mean", x, options);
  require_elements("mean", x, axes);
  return scaled_sum(x, axes, options.keep_axes, 1 / static_cast<double>(axes.num_reduced));
}

tensor max(const tensor& x, const reduction_options& options) {
  return extreme("max", x, options, &reduction_kernels::max);
}

tensor min(const tensor& x, const reduction_options& options) {
  return extreme("min", x, options, &reduction_kernels::min);
}

tensor argmax(const tensor& x, const reduction_options& options) {
  require_floating("argmax", "x", x);
  if (options.axes.size() > 1)
    throw_invalid("argmax", "one axis or all", std::to_string(options.axes.size()) + " axes");
  auto axes = axes_of("argmax", x, options);
  require_elements("argmax", x, axes);
  const auto& along = axes.steps.front();
  auto index = tensor::empty({along.outer, along.inner}, dtype::i64, x.device());
  if (index.num_elements() > 0) kernels_for(x).argmax(x, along, index);
  return index.reshape(options.keep_axes ? axes.kept : axes.dropped);
}

double total_sum(const tensor& x) {
  require_floating("total_sum", "x", x);
  return kernels_for(x).total_sum(x);
}

double global_norm(std::span<const tensor> tensors) {
  require_together("global_norm", tensors);
  return tensors.empty() ? 0 : std::sqrt(kernels_for(tensors.front()).sum_of_squares(tensors));
}

std::vector<double> block_squares(std::span<const tensor> tensors) {
  require_together("block_squares", tensors);
  return tensors.empty() ? std::vector<double>() : kernels_for(tensors.front()).block_squares(tensors);
}

bool all_finite(std::span<const tensor> tensors) {
  require_together("all_finite", tensors);
  return tensors.empty() || kernels_for(tensors.front()).all_finite(tensors);
}

bool scale_all(std::span<const tensor> tensors, double factor) {
  require_together("scale_all", tensors);
  return tensors.empty() || kernels_for(tensors.front()).scale_all(tensors, static_cast<float>(factor));
}

double clipping_factor(double norm, double max_norm) {
  if (!(max_norm > 0)) throw_invalid("clip_by_global_norm", "max_norm > 0", std::to_string(max_norm));
  auto factor = max_norm / (norm + 1e-6);
  return std::isfinite(norm) && factor < 1 ? factor : 1;
}

double clip_by_global_norm(std::span<const tensor> gradients, double max_norm) {
  auto norm = global_norm(gradients);
  auto factor = clipping_factor(norm, max_norm);
  if (factor < 1) scale_all(gradients, factor);
  return norm;
}

}  // namespace troupe
