#pragma once
#include <algorithm>
#include <cstdint>

#include "troupe/ops/kernels/pooling.hpp"

namespace troupe::cpu {

// The most frequent windows, 2 x 2 that touch, without padding. Some rows of windows are done together, so
// that vectors are full where a row is shorter than one.

bool is_2x2(const pool2d_options& options);

/// Some rows of windows of one image, [rows, width], and where their 2 rows x `image_width` elements begin.
struct rows_of_2x2 {
  std::int64_t rows = 0, width = 0, image_width = 0;
};

/// How many rows of windows to do at a time.
inline std::int64_t rows_at_once_2x2(const pool2d_problem& of) {
  return std::min(of.out.h, std::max<std::int64_t>(1, 256 / std::max<std::int64_t>(of.out.w, 1)));
}

/// How many floats the functions below need as scratch.
inline std::int64_t scratch_2x2(const pool2d_problem& of) { return 9 * rows_at_once_2x2(of) * of.out.w; }

/// The largest element of each window, and its place in the window. Of equal ones that is the first; NaN is
/// larger than all.
void max_2x2(const float* x, const rows_of_2x2& of, float* scratch, float* best, float* place);

// Of narrow images one window after the other: to gather rows of windows takes longer, for gradients below
// this width and for the maxima, which are more work, below a quarter of it.
constexpr std::int64_t narrow_2x2 = 16;
void narrow_max_2x2(const float* x, const rows_of_2x2& of, float* best, std::uint8_t* place);
/// Of whole planes.
void narrow_gradient_2x2(const float* dy, const std::uint8_t* place, const pool2d_problem& of,
                         std::int64_t planes, float* dx);

/// Each window's gradient at its place in the image, and zeros beside it.
void max_gradient_2x2(const float* dy, const float* place, const rows_of_2x2& of, float* scratch, float* dx);

}  // namespace troupe::cpu
