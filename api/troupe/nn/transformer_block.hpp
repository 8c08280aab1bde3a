#pragma once
#include "troupe/nn/activation.hpp"
#include "troupe/nn/attention.hpp"
#include "troupe/nn/norm.hpp"

namespace troupe::nn {

struct transformer_options {
  std::int64_t features = 256;
  int num_heads = 4;
  std::int64_t hidden_features = 0;  ///< of the MLP; 0: four times features
  bool causal = true;
  double dropout = 0;
  gelu_kind gelu = gelu_kind::tanh;
  double eps = 1e-5;
  int num_layers = 1;  ///< of the whole model: initial output projections are scaled by 1/sqrt(2 num_layers)
};

/// x + attention(norm(x)), then x + mlp(norm(x)): the pre-norm block of GPT-2, with its names and initial
/// weights (Radford et al. 2019, section 2.3). x: [B, T, features].
class TransformerBlock : public module_of<TransformerBlock> {
 public:
  explicit TransformerBlock(transformer_options options);
  variable forward(const variable& input) override;
  void each_child(const child_visitor& visit) override;
  /// Assumes a sequence length equal to `features`, since the length is not known.
  double cost() const override;

 private:
  std::int64_t features_;
  LayerNorm norm_1_, norm_2_;
  MultiheadAttention attention_;
  Linear up_, down_;
  gelu_kind gelu_;
  Dropout dropout_;
};

}  // namespace troupe::nn
