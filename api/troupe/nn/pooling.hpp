#pragma once
#include "troupe/autograd/functions.hpp"
#include "troupe/nn/module.hpp"

namespace troupe::nn {

/// One value for both image dimensions; troupe/ops/pooling.hpp has separate ones.
struct pool_layer_options {
  std::int64_t stride = 0;  ///< 0: equal to the kernel size
  std::int64_t padding = 0;
};

/// The maximum of each window of kernel x kernel pixels. x: [N, C, H, W] -> [N, C, OH, OW].
class MaxPool2d : public module_of<MaxPool2d> {
 public:
  explicit MaxPool2d(std::int64_t kernel, pool_layer_options options = {});
  variable forward(const variable& input) override { return max_pool2d(input, options_); }

 private:
  pool2d_options options_;
};

/// The mean of each window, including the zeros of the padding (PyTorch's count_include_pad). x: [N, C, H, W]
/// -> [N, C, OH, OW].
class AvgPool2d : public module_of<AvgPool2d> {
 public:
  explicit AvgPool2d(std::int64_t kernel, pool_layer_options options = {});
  variable forward(const variable& input) override { return avg_pool2d(input, options_); }

 private:
  pool2d_options options_;
};

/// The mean of each channel. x: [N, C, H, W] -> [N, C, 1, 1].
class GlobalAvgPool2d : public module_of<GlobalAvgPool2d> {
 public:
  variable forward(const variable& input) override { return global_avg_pool(input); }
};

}  // namespace troupe::nn
