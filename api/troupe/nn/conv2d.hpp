#pragma once
#include "troupe/nn/init.hpp"
#include "troupe/nn/module.hpp"
#include "troupe/ops/conv2d.hpp"

namespace troupe::nn {

/// One value for both image dimensions; troupe/ops/conv2d.hpp has separate ones.
struct conv2d_layer_options {
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  initializer weight_init = nullptr;  ///< null: init::fan_in_uniform
  initializer bias_init = nullptr;    ///< null: the same
};

/// Two-dimensional cross-correlation. x: [N, in_channels, H, W] -> [N, out_channels, OH, OW]; weight:
/// [out_channels, in_channels / groups, kernel, kernel], bias: [out_channels].
class Conv2d : public module_of<Conv2d> {
 public:
  /// Throws std::invalid_argument for numbers below 1 and channels that `groups` does not divide.
  Conv2d(std::int64_t in_channels, std::int64_t out_channels, std::int64_t kernel,
         conv2d_layer_options options = {});
  variable forward(const variable& input) override;
  /// max(forward(input), 0), fused, with the same bits.
  variable forward_with_relu(const variable& input);
  void each_parameter(const parameter_visitor& visit) override;
  /// Assumes an image of 16 x 16 pixels, since its size is not known.
  double cost() const override;

 private:
  conv2d_options operation_options() const;

  conv2d_layer_options options_;
  parameter weight_, bias_;
};

}  // namespace troupe::nn
