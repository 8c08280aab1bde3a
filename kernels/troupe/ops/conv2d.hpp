#pragma once
#include "troupe/ops/gradient_mode.hpp"
#include "troupe/ops/size_2d.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe {

struct conv2d_options {
  size_2d stride{1, 1};    ///< pixels between neighbouring windows
  size_2d padding{0, 0};   ///< rows and columns of zeros on every side of the image
  size_2d dilation{1, 1};  ///< pixels between neighbouring elements of the kernel
  /// Number of channel groups: the output channels of a group depend only on its input channels.
  std::int64_t groups = 1;
  /// Fuse a ReLU: the output is max(y, 0). The backward functions take the gradient before the ReLU:
  /// relu_backward(dy, y).
  bool relu = false;
  bool operator==(const conv2d_options&) const = default;
};

// Two-dimensional cross-correlation as in PyTorch's Conv2d. x: [N, C, H, W], weight: [O, C / groups, KH, KW],
// bias: [O] or undefined, y: [N, O, OH, OW] with
//
//     OH = (H + 2 padding.h - dilation.h (KH - 1) - 1) / stride.h + 1, rounded down; OW likewise;
//
// f32, bf16 or f16, all alike; sums are in f32, in an order (ops/cpu/convolution/convolution.hpp) that
// depends on the shapes of one image, the kernel and, for gradients of weights, the batch. Mismatches throw
// std::invalid_argument.

/// y[n, o, i, j] = bias[o] + the sum over c, k, l of weight[o, c, k, l] x[n, first(o) + c, row, column]. The
/// row is i stride.h - padding.h + k dilation.h, the column j stride.w - padding.w + l dilation.w. first(o)
/// is the first channel of o's group.
tensor conv2d_forward(const tensor& x, const tensor& weight, const tensor& bias,
                      const conv2d_options& options = {});

/// dx, of the extents `x_extents`: the sum over all windows of weight times dy.
tensor conv2d_backward_input(const tensor& dy, const tensor& weight, const shape& x_extents,
                             const conv2d_options& options = {});

/// weight_gradient = or += the sum over all windows of x times dy, and bias_gradient = or += the sum of each
/// channel of dy. Either may be undefined; both are f32 or of x's dtype.
void conv2d_backward_weight(const tensor& x, const tensor& dy, tensor weight_gradient, tensor bias_gradient,
                            const conv2d_options& options, gradient_mode mode);

}  // namespace troupe
