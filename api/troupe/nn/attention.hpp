#pragma once
#include "troupe/nn/dropout.hpp"
#include "troupe/nn/linear.hpp"

namespace troupe::nn {

struct attention_layer_options {
  bool causal = false;
  bool bias = true;
  double dropout = 0;                            ///< probability, applied to the output
  initializer projection_init = nullptr;         ///< null: as Linear
  initializer output_projection_init = nullptr;  ///< null: as Linear
};

/// Self-attention with `num_heads` heads over x: [B, T, features] -> [B, T, features] (Vaswani et al. 2017).
/// Queries, keys and values come from one projection, c_attn [3 features, features], as in GPT-2.
class MultiheadAttention : public module_of<MultiheadAttention> {
 public:
  /// Throws std::invalid_argument unless features is a multiple of num_heads.
  MultiheadAttention(std::int64_t features, int num_heads, attention_layer_options options = {});
  variable forward(const variable& input) override;
  void each_child(const child_visitor& visit) override;

 private:
  int num_heads_;
  bool causal_;
  Linear projection_, output_;
  Dropout dropout_;
};

}  // namespace troupe::nn
