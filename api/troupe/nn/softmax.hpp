#pragma once
#include "troupe/autograd/functions.hpp"
#include "troupe/nn/module.hpp"

namespace troupe::nn {

// Over the last axis, of f32, bf16 or f16; formulas in troupe/ops/softmax.hpp.

class Softmax : public module_of<Softmax> {
 public:
  variable forward(const variable& input) override { return softmax(input); }
};

class LogSoftmax : public module_of<LogSoftmax> {
 public:
  variable forward(const variable& input) override { return log_softmax(input); }
};

}  // namespace troupe::nn
