#include <algorithm>
#include <limits>

#include "troupe/ops/cpu/loops/for_each_plane.hpp"
#include "troupe/ops/cpu/loops/vector_clones.hpp"
#include "troupe/ops/cpu/pooling/max_pooling_2x2.hpp"
#include "troupe/ops/cpu/pooling/pooling.hpp"
#include "troupe/ops/cpu/pooling/window_rows.hpp"

namespace troupe::cpu {
namespace {

// Indices are floats within a row, exact below 2^24, so that loops use one vector width.

/// A later element replaces the maximum only if it is larger or NaN.
inline __attribute__((always_inline)) void take_larger(float value, float tap, float& best, float& index) {
  auto larger = (value > best) | (value != value);
  best = larger ? value : best;
  index = larger ? tap : index;
}

/// Scratch for one row of the image and one row of windows.
struct row_scratch {
  float *column_best, *column_tap, *index;
};

/// The maximum of each pixel column over the windows of row i, and its index in a window that begins there.
inline __attribute__((always_inline)) void max_columns(const float* x, const pool2d_problem& problem,
                                                       std::int64_t i, float* __restrict best,
                                                       float* __restrict tap) {
  const auto& [kernel, stride, padding, include] = problem.options;
  auto top = i * stride.h - padding.h;
  auto first = std::max<std::int64_t>(0, -top), last = std::min(kernel.h, problem.in.h - top);
  std::copy_n(x + (top + first) * problem.in.w, problem.in.w, best);
  std::fill_n(tap, problem.in.w, static_cast<float>(first * kernel.w));
  for (auto k = first + 1; k < last; ++k) {
    const auto* row = x + (top + k) * problem.in.w;
    auto number = static_cast<float>(k * kernel.w);
    for (std::int64_t column = 0; column < problem.in.w; ++column)
      take_larger(row[column], number, best[column], tap[column]);
  }
}

/// Combines column l of a row of windows. Of equal elements the one with the smaller index wins.
inline __attribute__((always_inline)) void take_column(const float* value, const float* tap, float l,
                                                       std::int64_t stride, window_range windows,
                                                       float* __restrict best, float* __restrict index) {
  for (auto j = windows.begin; j < windows.end; ++j) {
    auto candidate = value[j * stride], number = tap[j * stride] + l;
    auto better =
        (candidate > best[j]) | ((candidate == best[j]) & (number < index[j])) | (candidate != candidate);
    best[j] = better ? candidate : best[j];
    index[j] = better ? number : index[j];
  }
}

/// Row i of windows.
inline __attribute__((always_inline)) void max_row(const float* x, const pool2d_problem& problem,
                                                   std::int64_t i, const row_scratch& scratch, float* best) {
  const auto& [kernel, stride, padding, include] = problem.options;
  max_columns(x, problem, i, scratch.column_best, scratch.column_tap);
  std::fill_n(best, problem.out.w, -std::numeric_limits<float>::infinity());
  std::fill_n(scratch.index, problem.out.w, std::numeric_limits<float>::infinity());
  for (std::int64_t l = 0; l < kernel.w; ++l) {
    auto offset = l - padding.w;
    auto at = windows_inside(problem.out.w, problem.in.w, stride.w, offset);
    const auto *value = scratch.column_best + offset, *tap = scratch.column_tap + offset;
    auto number = static_cast<float>(l);
    // Specialised loops for the frequent strides, so that they are vectorised.
    if (stride.w == 1)
      take_column(value, tap, number, 1, at, best, scratch.index);
    else if (stride.w == 2)
      take_column(value, tap, number, 2, at, best, scratch.index);
    else
      take_column(value, tap, number, stride.w, at, best, scratch.index);
  }
}

template <class Index>
inline __attribute__((always_inline)) void store_places(const float* from, std::int64_t count, Index* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<Index>(from[i]);
}

template <class Index>
inline __attribute__((always_inline)) void max_plane(const float* x, const pool2d_problem& problem, float* y,
                                                     const row_scratch& scratch, Index* indices) {
  for (std::int64_t i = 0; i < problem.out.h; ++i, y += problem.out.w, indices += problem.out.w) {
    max_row(x, problem, i, scratch, y);
    store_places(scratch.index, problem.out.w, indices);
  }
}

TROUPE_CLONES void max_plane_u8(const float* x, const pool2d_problem& problem, float* y,
                                const row_scratch& scratch, std::uint8_t* indices) {
  max_plane(x, problem, y, scratch, indices);
}

TROUPE_CLONES void max_plane_i32(const float* x, const pool2d_problem& problem, float* y,
                                 const row_scratch& scratch, std::int32_t* indices) {
  max_plane(x, problem, y, scratch, indices);
}

/// The same as max_plane, for windows of 2 x 2.
TROUPE_CLONES void max_plane_of_2x2(const float* x, const pool2d_problem& problem, float* y, float* scratch,
                                    std::uint8_t* indices) {
  if (problem.out.w < narrow_2x2 / 4)
    return narrow_max_2x2(x, {problem.out.h, problem.out.w, problem.in.w}, y, indices);
  auto at_once = rows_at_once_2x2(problem);
  auto* place = scratch + 8 * at_once * problem.out.w;
  for (std::int64_t row = 0; row < problem.out.h; row += at_once) {
    rows_of_2x2 some{std::min(at_once, problem.out.h - row), problem.out.w, problem.in.w};
    auto first = row * problem.out.w;
    max_2x2(x + 2 * row * problem.in.w, some, scratch, y + first, place);
    store_places(place, some.rows * problem.out.w, indices + first);
  }
}

TROUPE_CLONES void max_plane_gradient_of_2x2(const float* dy, const std::uint8_t* indices,
                                             const pool2d_problem& problem, float* scratch, float* dx) {
  auto at_once = rows_at_once_2x2(problem);
  auto* place = scratch + 8 * at_once * problem.out.w;
  for (std::int64_t row = 0; row < problem.out.h; row += at_once) {
    rows_of_2x2 some{std::min(at_once, problem.out.h - row), problem.out.w, problem.in.w};
    auto first = row * problem.out.w;
    for (std::int64_t i = 0; i < some.rows * problem.out.w; ++i)
      place[i] = static_cast<float>(indices[first + i]);
    max_gradient_2x2(dy + first, place, some, scratch, dx + 2 * row * problem.in.w);
  }
  std::fill(dx + 2 * problem.out.h * problem.in.w, dx + problem.in.h * problem.in.w, 0.0F);
}

template <class Index>
void max_plane_gradient(const float* dy, const Index* indices, const pool2d_problem& problem, float* dx) {
  const auto& [kernel, stride, padding, include] = problem.options;
  std::fill_n(dx, problem.in.h * problem.in.w, 0.0F);
  for (std::int64_t i = 0; i < problem.out.h; ++i)
    for (std::int64_t j = 0; j < problem.out.w; ++j) {
      std::int64_t tap = *indices++;
      auto row = i * stride.h - padding.h + tap / kernel.w,
           column = j * stride.w - padding.w + tap % kernel.w;
      // Checks the index before it is used as an address, though it should come from the forward pass.
      auto gradient = *dy++;
      if (row >= 0 && row < problem.in.h && column >= 0 && column < problem.in.w)
        dx[row * problem.in.w + column] += gradient;
    }
}

}  // namespace

void max_pool_forward(const pool2d_problem& problem, const tensor& x, tensor& y, tensor& indices) {
  auto simple = is_2x2(problem.options);
  plane_sizes sizes{problem.in.h * problem.in.w, problem.out.h * problem.out.w,
                    simple ? scratch_2x2(problem) : 2 * problem.in.w + problem.out.w};
  for_each_plane(problem.planes, sizes, x, y,
                 [&](std::int64_t plane, const float* in, float* out, float* room) {
                   row_scratch row{room, room + problem.in.w, room + 2 * problem.in.w};
                   auto first = plane * sizes.out_size;
                   if (simple)
                     max_plane_of_2x2(in, problem, out, room, indices.values<std::uint8_t>().data() + first);
                   else if (indices.dtype() == dtype::u8)
                     max_plane_u8(in, problem, out, row, indices.values<std::uint8_t>().data() + first);
                   else
                     max_plane_i32(in, problem, out, row, indices.values<std::int32_t>().data() + first);
                 });
}

namespace {

void narrow_backward_2x2(const pool2d_problem& problem, const tensor& dy, const tensor& indices, tensor& dx) {
  auto out_size = problem.out.h * problem.out.w;
  const auto* places = indices.values<std::uint8_t>().data();
  for_some_planes(problem.planes, {out_size, problem.in.h * problem.in.w}, dy, dx,
                  [&](std::int64_t first, std::int64_t planes, const float* in, float* out, float*) {
                    narrow_gradient_2x2(in, places + first * out_size, problem, planes, out);
                  });
}

}  // namespace

void max_pool_backward(const pool2d_problem& problem, const tensor& dy, const tensor& indices, tensor& dx) {
  if (is_2x2(problem.options) && problem.out.w < narrow_2x2)
    return narrow_backward_2x2(problem, dy, indices, dx);
  auto simple = is_2x2(problem.options);
  plane_sizes sizes{problem.out.h * problem.out.w, problem.in.h * problem.in.w,
                    simple ? scratch_2x2(problem) : 0};
  for_each_plane(
      problem.planes, sizes, dy, dx, [&](std::int64_t plane, const float* in, float* out, float* room) {
        auto first = plane * sizes.in_size;
        if (simple)
          max_plane_gradient_of_2x2(in, indices.values<std::uint8_t>().data() + first, problem, room, out);
        else if (indices.dtype() == dtype::u8)
          max_plane_gradient(in, indices.values<std::uint8_t>().data() + first, problem, out);
        else
          max_plane_gradient(in, indices.values<std::int32_t>().data() + first, problem, out);
      });
}

}  // namespace troupe::cpu
