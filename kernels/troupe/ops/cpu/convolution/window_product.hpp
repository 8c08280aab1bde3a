#pragma once

#include <cstdint>

#include "troupe/ops/cpu/product/product_loops.hpp"
#include "troupe/ops/size_2d.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::cpu {

/// A matrix [rows, inner] as panels of A, to be multiplied with many others.
class packed_weights {
 public:
  packed_weights(const float* weights, std::int64_t rows, std::int64_t inner, const product_loops& loops);

  std::int64_t inner() const { return inner_; }
  /// C from a block of B in panels, whose inner axis begins at `first_inner`, a multiple of inner_block; only
  /// the last block is followed by bias and ReLU.
  void multiply(const float* b, std::int64_t columns, std::int64_t first_inner, const block_target& to) const;

 private:
  std::int64_t rows_, inner_;
  const product_loops* loops_;
  tensor panels_;
};

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

/// Part `index` of `count`, nearly equal ones.
struct image_part {
  std::int64_t index = 0, count = 1;
};

/// C[., w] = weights times window w, for the windows of a part of an image. Runs on the calling thread.
void multiply_windows(const packed_weights& weights, const window_matrix& windows, const image_part& part,
                      const block_target& to, const product_loops& loops);

}  // namespace troupe::cpu
