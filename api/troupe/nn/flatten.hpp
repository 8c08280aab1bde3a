#pragma once
#include "troupe/autograd/functions.hpp"
#include "troupe/nn/module.hpp"

namespace troupe::nn {

/// [B, ...] to [B, product of the rest]: the same elements.
class Flatten : public module_of<Flatten> {
 public:
  variable forward(const variable& input) override { return flatten(input); }
};

}  // namespace troupe::nn
