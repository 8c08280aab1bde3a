#pragma once
#include <algorithm>
#include <cstdint>

#include "troupe/ops/kernels/pooling.hpp"

namespace troupe::cpu {

/// Positions [begin, end) of windows along one axis.
struct window_range {
  std::int64_t begin, end;
};

/// The positions i in [0, out) for which pixel i stride + offset lies in [0, in).
inline window_range windows_inside(std::int64_t out, std::int64_t in, std::int64_t stride,
                                   std::int64_t offset) {
  auto rounded_up = [stride](std::int64_t value) { return value <= 0 ? 0 : (value + stride - 1) / stride; };
  auto end = std::min(out, rounded_up(in - offset));
  return {std::min(rounded_up(-offset), end), end};
}

/// Calls `row(tap, first pixel, columns)` for the elements `tap` of the kernel, in order, that lie inside the
/// image for windows of row i. Window j in `columns` has its pixel at first pixel + j stride.w.
template <class Row>
inline __attribute__((always_inline)) void for_each_tap(const pool2d_problem& problem, std::int64_t i,
                                                        const Row& row) {
  const auto& [kernel, stride, padding, include] = problem.options;
  for (std::int64_t k = 0; k < kernel.h; ++k) {
    auto pixel_row = i * stride.h + k - padding.h;
    if (pixel_row < 0 || pixel_row >= problem.in.h) continue;
    for (std::int64_t l = 0; l < kernel.w; ++l)
      row(k * kernel.w + l, pixel_row * problem.in.w + l - padding.w,
          windows_inside(problem.out.w, problem.in.w, stride.w, l - padding.w));
  }
}

}  // namespace troupe::cpu
