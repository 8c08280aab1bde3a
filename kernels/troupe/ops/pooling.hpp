#pragma once
#include "troupe/ops/size_2d.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe {

struct pool2d_options {
  size_2d kernel{2, 2};
  size_2d stride{2, 2};   ///< pixels between neighbouring windows
  size_2d padding{0, 0};  ///< on every side, at most half the kernel, so that each window contains a pixel
  /// Whether an average includes the padding as zeros; a maximum never does.
  bool count_include_pad = true;
  bool operator==(const pool2d_options&) const = default;
};

// Pooling. x: [N, C, H, W], y: [N, C, OH, OW] with OH = (H + 2 padding.h - kernel.h) / stride.h +
// 1, rounded down, and OW likewise; f32, bf16 or f16, all alike, with sums in f32. The bits depend neither on
// the number of threads nor on the machine. Mismatches throw std::invalid_argument.

struct max_pool2d_result {
  tensor y;
  /// The index of each maximum within its window, in row-major order: u8 if the kernel has up to 256
  /// elements, else i32. An opaque argument of max_pool2d_backward.
  tensor indices;
};

/// The largest element of each window; of equal ones the first, row by row. NaN is larger than all else.
max_pool2d_result max_pool2d_forward(const tensor& x, const pool2d_options& options = {});

/// dx, of the extents `x_extents`: adds each element of dy at the position of its maximum.
tensor max_pool2d_backward(const tensor& dy, const tensor& indices, const shape& x_extents,
                           const pool2d_options& options = {});

/// The average of each window.
tensor avg_pool2d_forward(const tensor& x, const pool2d_options& options = {});
/// dx, of the extents `x_extents`: distributes each element of dy equally over its window.
tensor avg_pool2d_backward(const tensor& dy, const shape& x_extents, const pool2d_options& options = {});

/// y: [N, C, 1, 1], the average of each channel of each image, which has at least one pixel.
tensor global_avg_pool_forward(const tensor& x);
/// dx, of the extents `x_extents`.
tensor global_avg_pool_backward(const tensor& dy, const shape& x_extents);

}  // namespace troupe
