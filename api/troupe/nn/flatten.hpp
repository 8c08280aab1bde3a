#pragma once
#include "troupe/autograd/functions.hpp"
#include "troupe/nn/module.hpp"

namespace troupe::nn {

/// [B, ...] to [B, product of the rest]: the same elements.
class Flatten : public Module {
 public:
  variable forward(const variable& input) override { return flatten(input); }
  std::shared_ptr<Module> clone() const override { return std::make_shared<Flatten>(*this); }
};

}  // namespace troupe::nn
