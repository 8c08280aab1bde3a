#pragma once
#include "troupe/autograd/functions.hpp"
#include "troupe/nn/module.hpp"

namespace troupe::nn {

/// y = max(x, 0), elementwise, f32 of any shape.
class ReLU : public Module {
 public:
  variable forward(const variable& input) override { return relu(input); }
  std::shared_ptr<Module> clone() const override { return std::make_shared<ReLU>(*this); }
};

}  // namespace troupe::nn
