#pragma once
#include "troupe/autograd/functions.hpp"
#include "troupe/nn/module.hpp"

namespace troupe::nn {

// Elementwise, of f32, bf16 or f16 and any shape; formulas in troupe/ops/activation.hpp.

/// max(x, 0)
class ReLU : public module_of<ReLU> {
 public:
  variable forward(const variable& input) override { return relu(input); }
};

/// x Phi(x), exactly or by the tanh formula, which GPT-2 uses.
class GELU : public module_of<GELU> {
 public:
  explicit GELU(gelu_kind kind = gelu_kind::exact) : kind_(kind) {}
  variable forward(const variable& input) override { return gelu(input, kind_); }

 private:
  gelu_kind kind_;
};

/// x sigmoid(x)
class SiLU : public module_of<SiLU> {
 public:
  variable forward(const variable& input) override { return silu(input); }
};

class Tanh : public module_of<Tanh> {
 public:
  variable forward(const variable& input) override { return tanh(input); }
};

class Sigmoid : public module_of<Sigmoid> {
 public:
  variable forward(const variable& input) override { return sigmoid(input); }
};

}  // namespace troupe::nn
