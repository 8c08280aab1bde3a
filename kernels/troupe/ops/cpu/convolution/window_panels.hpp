#pragma once
#include <cstdint>

#include "troupe/ops/cpu/product/product_loops.hpp"
#include "troupe/ops/size_2d.hpp"

namespace troupe::cpu {

/// The windows of one image as the columns of a matrix [taps, windows], without copying it: element (t, w) is
/// the padded planes' float at taps[t] + the offset of window w.
struct window_matrix {
  const float* planes = nullptr;
  const std::int64_t* taps = nullptr;
  size_2d windows;            ///< rows and columns of them
  std::int64_t row_step = 0;  ///< from a window to the one below it, in floats

  std::int64_t offset_of(std::int64_t window) const {
    return window / windows.w * row_step + window % windows.w;
  }
};

/// Copies taps [first_tap, first_tap + inner) of at most panel_columns windows into a panel of B.
void pack_windows(const window_matrix& from, std::int64_t first_window, std::int64_t num_windows,
                  std::int64_t first_tap, std::int64_t inner, const product_loops& loops, float* to);

}  // namespace troupe::cpu
