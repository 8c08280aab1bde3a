#include "troupe/ops/pooling.hpp"

#include <algorithm>
#include <string>

#include "troupe/error/errors.hpp"
#include "troupe/ops/detail/arguments.hpp"
#include "troupe/ops/kernels/all.hpp"

namespace troupe {
namespace {

std::string to_string(size_2d size) { return std::to_string(size.h) + " x " + std::to_string(size.w); }

void require_options(std::string_view operation, const pool2d_options& options) {
  constexpr auto limit = std::int64_t{1} << 24;  // exact as floats, and nothing overflows
  auto [kernel, stride, padding, include] = options;
  if (std::min({kernel.h, kernel.w, stride.h, stride.w}) < 1 ||
      std::max({kernel.h, kernel.w, stride.h, stride.w, kernel.h * kernel.w}) >= limit)
    throw_invalid(operation, "kernel and stride of 1 to 2^24 pixels",
                  to_string(kernel) + " and " + to_string(stride));
  if (std::min(padding.h, padding.w) < 0 || padding.h > kernel.h / 2 || padding.w > kernel.w / 2)
    throw_invalid(operation, "padding from 0 to half the kernel " + to_string(kernel), to_string(padding));
}

pool2d_problem problem_of(std::string_view operation, const shape& x, const pool2d_options& options) {
  require_options(operation, options);
  if (x.rank() != 4) throw_invalid(operation, "x [N, C, H, W]", to_string(x));
  pool2d_problem problem{x[0] * x[1], {x[2], x[3]}, {}, options};
  auto [kernel, stride, padding, include] = options;
  auto margin_h = problem.in.h + 2 * padding.h - kernel.h, margin_w = problem.in.w + 2 * padding.w - kernel.w;
  if (margin_h < 0 || margin_w < 0 || problem.in.h < 1 || problem.in.w < 1)
    throw_invalid(
        operation, "an image at least as large as the kernel",
        to_string(problem.in) + " padded by " + to_string(padding) + " for a kernel of " + to_string(kernel));
  problem.out = {margin_h / stride.h + 1, margin_w / stride.w + 1};
  return problem;
}

shape extents_of_y(const shape& x, const pool2d_problem& problem) {
  return {x[0], x[1], problem.out.h, problem.out.w};
}

void require_dy(std::string_view operation, const tensor& dy, const shape& extents) {
  require_floating(operation, "dy", dy);
  require_argument(operation, "dy", dy, dy.dtype(), extents);
}

dtype index_type(const pool2d_options& options) {
  return options.kernel.h * options.kernel.w <= 256 ? dtype::u8 : dtype::i32;
}

/// Images and channels of x [N, C, H, W] and the pixels of each.
std::pair<std::int64_t, std::int64_t> planes_of(std::string_view operation, const shape& x) {
  if (x.rank() != 4 || x[2] < 1 || x[3] < 1)
    throw_invalid(operation, "x [N, C, H, W] with H and W at least 1", to_string(x));
  return {x[0] * x[1], x[2] * x[3]};
}

}  // namespace

max_pool2d_result max_pool2d_forward(const tensor& x, const pool2d_options& options) {
  require_floating("max_pool2d", "x", x);
  auto problem = problem_of("max_pool2d", x.shape(), options);
  auto extents = extents_of_y(x.shape(), problem);
  max_pool2d_result result{tensor::empty(extents, x.dtype(), x.device()),
                           tensor::empty(extents, index_type(options), x.device())};
  kernels_on(x.device()).pooling.max_forward(problem, x, result.y, result.indices);
  return result;
}

tensor max_pool2d_backward(const tensor& dy, const tensor& indices, const shape& x_extents,
                           const pool2d_options& options) {
  constexpr const char* operation = "max_pool2d_backward";
  auto problem = problem_of(operation, x_extents, options);
  require_dy(operation, dy, extents_of_y(x_extents, problem));
  require_argument(operation, "indices", indices, index_type(options), dy.shape());
  if (indices.device() != dy.device())
    throw_invalid(operation, "indices on " + to_string(dy.device()), describe(indices));
  auto dx = tensor::empty(x_extents, dy.dtype(), dy.device());
  kernels_on(dy.device()).pooling.max_backward(problem, dy, indices, dx);
  return dx;
}

tensor avg_pool2d_forward(const tensor& x, const pool2d_options& options) {
  require_floating("avg_pool2d", "x", x);
  auto problem = problem_of("avg_pool2d", x.shape(), options);
  auto y = tensor::empty(extents_of_y(x.shape(), problem), x.dtype(), x.device());
  kernels_on(x.device()).pooling.average_forward(problem, x, y);
  return y;
}

tensor avg_pool2d_backward(const tensor& dy, const shape& x_extents, const pool2d_options& options) {
  auto problem = problem_of("avg_pool2d_backward", x_extents, options);
  require_dy("avg_pool2d_backward", dy, extents_of_y(x_extents, problem));
  auto dx = tensor::empty(x_extents, dy.dtype(), dy.device());
  kernels_on(dy.device()).pooling.average_backward(problem, dy, dx);
  return dx;
}

tensor global_avg_pool_forward(const tensor& x) {
  require_floating("global_avg_pool", "x", x);
  auto [planes, size] = planes_of("global_avg_pool", x.shape());
  auto y = tensor::empty({x.shape()[0], x.shape()[1], 1, 1}, x.dtype(), x.device());
  kernels_on(x.device()).pooling.global_average_forward(planes, size, x, y);
  return y;
}

tensor global_avg_pool_backward(const tensor& dy, const shape& x_extents) {
  auto [planes, size] = planes_of("global_avg_pool_backward", x_extents);
  require_dy("global_avg_pool_backward", dy, {x_extents[0], x_extents[1], 1, 1});
  auto dx = tensor::empty(x_extents, dy.dtype(), dy.device());
  kernels_on(dy.device()).pooling.global_average_backward(planes, size, dy, dx);
  return dx;
}

}  // namespace troupe
