#pragma once
#include "troupe/autograd/functions.hpp"
#include "troupe/nn/module.hpp"

namespace troupe::nn {

/// Converts u8 to f32, times `scale`: by default, byte images to [0, 1]. Put it before the first layer with
/// parameters, so that samples are transferred as bytes.
class ToFloat : public module_of<ToFloat> {
 public:
  explicit ToFloat(float scale = 1.0F / 255) : scale_(scale) {}
  variable forward(const variable& input) override { return to_float(input, scale_); }

 private:
  float scale_;
};

}  // namespace troupe::nn
