#pragma once
#include <algorithm>
#include <cstdint>

#include "troupe/ops/kernels/pooling.hpp"

namespace troupe::cpu {

// Max pooling with 2 x 2 windows of stride 2 without padding, the most frequent case. Several rows of windows
// are computed together, so that vectors are full even if a row is shorter than a vector.

bool is_2x2(const pool2d_options& options);

/// Rows of windows of one image, [rows, width], over 2 rows x `image_width` elements each.
struct rows_of_2x2 {
  std::int64_t rows = 0, width = 0, image_width = 0;
};

/// The number of rows of windows computed at a time.
inline std::int64_t rows_at_once_2x2(const pool2d_problem& problem) {
  return std::min(problem.out.h, std::max<std::int64_t>(1, 256 / std::max<std::int64_t>(problem.out.w, 1)));
}

/// The scratch size of the functions below, in floats.
inline std::int64_t scratch_2x2(const pool2d_problem& problem) {
  return 9 * rows_at_once_2x2(problem) * problem.out.w;
}

/// The maximum of each window and its index in the window. Of equal elements the first one; NaN counts as the
/// largest.
void max_2x2(const float* x, const rows_of_2x2& windows, float* scratch, float* best, float* place);

// Narrow images are computed window by window, which is faster: gradients below this width, maxima below a
// quarter of it.
constexpr std::int64_t narrow_2x2 = 16;
void narrow_max_2x2(const float* x, const rows_of_2x2& windows, float* best, std::uint8_t* place);
/// Gradients of whole planes.
void narrow_gradient_2x2(const float* dy, const std::uint8_t* place, const pool2d_problem& problem,
                         std::int64_t planes, float* dx);

/// Writes each window's gradient at the position of its maximum, and zeros elsewhere.
void max_gradient_2x2(const float* dy, const float* place, const rows_of_2x2& windows, float* scratch,
                      float* dx);

}  // namespace troupe::cpu
