#pragma once
#include "troupe/autograd/functions.hpp"
#include "troupe/nn/module.hpp"

namespace troupe::nn {

/// y = max(x, 0), elementwise, f32 of any shape.
class ReLU : public module_of<ReLU> {
 public:
  variable forward(const variable& input) override { return relu(input); }
};

}  // namespace troupe::nn
