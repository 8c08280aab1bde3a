#include "troupe/ops/cpu/pooling/pooling.hpp"

#include <algorithm>

#include "troupe/ops/cpu/kernel_tables.hpp"
#include "troupe/ops/cpu/loops/for_each_plane.hpp"
#include "troupe/ops/cpu/loops/lanes.hpp"
#include "troupe/ops/cpu/loops/vector_clones.hpp"
#include "troupe/ops/cpu/pooling/max_pooling_2x2.hpp"
#include "troupe/ops/cpu/pooling/window_rows.hpp"
#include "troupe/ops/cpu/rows.hpp"

namespace troupe::cpu {
namespace {

/// How many elements the window at (i, j) averages over.
inline __attribute__((always_inline)) float count_of(const pool2d_problem& problem, std::int64_t i,
                                                     std::int64_t j) {
  const auto& [kernel, stride, padding, include] = problem.options;
  if (include) return static_cast<float>(kernel.h * kernel.w);
  auto top = i * stride.h - padding.h, left = j * stride.w - padding.w;
  auto rows = std::min(top + kernel.h, problem.in.h) - std::max<std::int64_t>(top, 0);
  auto columns = std::min(left + kernel.w, problem.in.w) - std::max<std::int64_t>(left, 0);
  return static_cast<float>(rows * columns);
}

/// sum[j] += x[j stride]
inline __attribute__((always_inline)) void add_pixels(const float* x, std::int64_t stride,
                                                      window_range windows, float* sum) {
  for (auto j = windows.begin; j < windows.end; ++j) sum[j] += x[j * stride];
}

TROUPE_CLONES void average_plane(const float* x, const pool2d_problem& problem, float* y) {
  auto stride = problem.options.stride.w;
  for (std::int64_t i = 0; i < problem.out.h; ++i, y += problem.out.w) {
    std::fill_n(y, problem.out.w, 0.0F);
    for_each_tap(problem, i, [&](std::int64_t, std::int64_t first, window_range windows) {
      if (stride == 1)
        add_pixels(x + first, 1, windows, y);
      else if (stride == 2)
        add_pixels(x + first, 2, windows, y);
      else
        add_pixels(x + first, stride, windows, y);
    });
    for (std::int64_t j = 0; j < problem.out.w; ++j) y[j] /= count_of(problem, i, j);
  }
}

/// The same for windows of 2 x 2.
TROUPE_CLONES void average_2x2(const float* x, const pool2d_problem& problem, std::int64_t planes, float* y) {
  for (std::int64_t plane = 0; plane < planes; ++plane, x += problem.in.h * problem.in.w)
    for (std::int64_t i = 0; i < problem.out.h; ++i, y += problem.out.w) {
      const auto *upper = x + 2 * i * problem.in.w, *lower = upper + problem.in.w;
      for (std::int64_t j = 0; j < problem.out.w; ++j)
        y[j] = (0.0F + upper[2 * j] + upper[2 * j + 1] + lower[2 * j] + lower[2 * j + 1]) / 4;
    }
}

TROUPE_CLONES void average_gradient_of_2x2(const float* dy, const pool2d_problem& problem,
                                           std::int64_t planes, float* dx) {
  auto [height, width] = problem.in;
  for (std::int64_t plane = 0; plane < planes; ++plane, dx += height * width) {
    for (std::int64_t i = 0; i < problem.out.h; ++i, dy += problem.out.w) {
      auto *upper = dx + 2 * i * width, *lower = upper + width;
      for (std::int64_t j = 0; j < problem.out.w; ++j)
        upper[2 * j] = upper[2 * j + 1] = lower[2 * j] = lower[2 * j + 1] = 0.0F + dy[j] / 4;
      if (width % 2 != 0) upper[width - 1] = lower[width - 1] = 0;
    }
    if (height % 2 != 0) std::fill_n(dx + (height - 1) * width, width, 0.0F);
  }
}

/// `row` has room for one row of windows.
TROUPE_CLONES void average_plane_gradient(const float* dy, const pool2d_problem& problem, float* row,
                                          float* dx) {
  auto stride = problem.options.stride.w;
  std::fill_n(dx, problem.in.h * problem.in.w, 0.0F);
  for (std::int64_t i = 0; i < problem.out.h; ++i, dy += problem.out.w) {
    for (std::int64_t j = 0; j < problem.out.w; ++j) row[j] = dy[j] / count_of(problem, i, j);
    for_each_tap(problem, i, [&](std::int64_t, std::int64_t first, window_range windows) {
      for (auto j = windows.begin; j < windows.end; ++j) dx[first + j * stride] += row[j];
    });
  }
}

void average_forward(const pool2d_problem& problem, const tensor& x, tensor& y) {
  plane_sizes sizes{problem.in.h * problem.in.w, problem.out.h * problem.out.w};
  if (is_2x2(problem.options))
    return for_some_planes(problem.planes, sizes, x, y,
                           [&](std::int64_t, std::int64_t planes, const float* in, float* out, float*) {
                             average_2x2(in, problem, planes, out);
                           });
  for_each_plane(problem.planes, sizes, x, y,
                 [&](std::int64_t, const float* in, float* out, float*) { average_plane(in, problem, out); });
}

void average_backward(const pool2d_problem& problem, const tensor& dy, tensor& dx) {
  if (is_2x2(problem.options))
    return for_some_planes(problem.planes, {problem.out.h * problem.out.w, problem.in.h * problem.in.w}, dy,
                           dx, [&](std::int64_t, std::int64_t planes, const float* in, float* out, float*) {
                             average_gradient_of_2x2(in, problem, planes, out);
                           });
  for_each_plane(problem.planes, {problem.out.h * problem.out.w, problem.in.h * problem.in.w, problem.out.w},
                 dy, dx, [&](std::int64_t, const float* in, float* out, float* row) {
                   average_plane_gradient(in, problem, row, out);
                 });
}

TROUPE_CLONES void average_rows(const float* x, std::int64_t rows, std::int64_t size, float* averages) {
  for (std::int64_t row = 0; row < rows; ++row, x += size)
    averages[row] = static_cast<float>(sum_in_lanes(size, [&](std::int64_t i) { return x[i]; }));
  for (std::int64_t row = 0; row < rows; ++row) averages[row] /= static_cast<float>(size);
}

void global_average_forward(std::int64_t planes, std::int64_t size, const tensor& x, tensor& y) {
  auto in = x.reshape({planes, size}), out = y.reshape({planes, 1});
  for_each_rows(in, [&](std::int64_t first, std::int64_t count) {
    const auto* from = read_rows(in, first, count, 0);
    write_rows(out, first, count, 1, [&](float* to) { average_rows(from, count, size, to); });
  });
}

void global_average_backward(std::int64_t planes, std::int64_t size, const tensor& dy, tensor& dx) {
  for_each_plane(planes, {1, size}, dy, dx, [&](std::int64_t, const float* in, float* out, float*) {
    std::fill_n(out, size, *in / static_cast<float>(size));
  });
}

}  // namespace

pooling_kernels pooling() {
  return {.max_forward = max_pool_forward,
          .max_backward = max_pool_backward,
          .average_forward = average_forward,
          .average_backward = average_backward,
          .global_average_forward = global_average_forward,
          .global_average_backward = global_average_backward};
}

}  // namespace troupe::cpu
