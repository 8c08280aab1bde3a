#include "troupe/ops/reduction.hpp"

#include <algorithm>
#include <utility>

#include "troupe/autograd/functions.hpp"
#include "troupe/autograd/functions/one_input.hpp"
#include "troupe/ops/convert.hpp"
#include "troupe/ops/elementwise.hpp"

namespace troupe {
namespace {

/// The shape of the reduced x with keep_axes. The options have been checked.
shape kept_extents(const tensor& x, const reduction_options& options) {
  auto extents = x.shape().extents();
  if (options.axes.empty()) std::ranges::fill(extents, 1);
  for (auto axis : options.axes)
    extents[static_cast<std::size_t>(axis < 0 ? axis + x.shape().rank() : axis)] = 1;
  return shape(std::move(extents));
}

tensor extreme_gradient(const tensor& dy, const tensor& x, const tensor& y, const std::vector<int>& axes) {
  auto is_extreme = equal(x, y);
  auto zero = tensor::zeros({}, dtype::f32, x.device());
  auto ties = sum(where(is_extreme, add(zero, 1), zero), {.axes = axes, .keep_axes = true});
  return cast(where(is_extreme, divide(dy, ties), zero), x.dtype());
}

variable extreme(const variable& x, tensor y, const reduction_options& options) {
  auto kept = kept_extents(x.value, options);
  return record_one_input(x, y, [input = x.value, y, kept, axes = options.axes](const tensor& dy) {
    return extreme_gradient(dy.reshape(kept), input, y.reshape(kept), axes);
  });
}

}  // namespace

variable sum(const variable& x, const reduction_options& options) {
  auto y = sum(x.value, options);
  return record_one_input(
      x, y, [kept = kept_extents(x.value, options), extents = x.value.shape()](const tensor& dy) {
        return broadcast_to(dy.reshape(kept), extents);
      });
}

variable mean(const variable& x, const reduction_options& options) {
  auto y = mean(x.value, options);
  auto share =
      static_cast<float>(static_cast<double>(y.num_elements()) / static_cast<double>(x.value.num_elements()));
  return record_one_input(
      x, y, [kept = kept_extents(x.value, options), extents = x.value.shape(), share](const tensor& dy) {
        return broadcast_to(multiply(dy.reshape(kept), share), extents);
      });
}

variable max(const variable& x, const reduction_options& options) {
  return extreme(x, max(x.value, options), options);
}

variable min(const variable& x, const reduction_options& options) {
  return extreme(x, min(x.value, options), options);
}

}  // namespace troupe
