#pragma once
#include <memory>

#include "troupe/nn/embedding.hpp"
#include "troupe/nn/sequential.hpp"
#include "troupe/nn/transformer_block.hpp"

namespace troupe::nn {

struct gpt_options {
  std::int64_t vocabulary = 256;
  std::int64_t context = 128;  ///< maximum number of tokens in a sequence
  std::int64_t features = 256;
  int num_layers = 4;
  int num_heads = 4;
  double dropout = 0;
  gelu_kind gelu = gelu_kind::tanh;
  /// Tie the output layer to the token embedding, as GPT-2 does.
  bool tie_weights = true;
  /// Checkpoint each block: only its input is saved and backward recomputes it. Far less memory for about a
  /// third more time, with the same bits and names (checkpoint.hpp).
  bool checkpoint_blocks = false;
};

/// GPT-2 124M: 50,257 tokens, 1,024 of context, width 768, 12 layers, 12 heads.
gpt_options gpt2_124m();

/// The embeddings of a GPT: maps tokens [B, T], T <= context, to wte[token] + wpe[position], [B, T,
/// features].
class GPTEmbedding : public module_of<GPTEmbedding> {
 public:
  explicit GPTEmbedding(const gpt_options& options);
  variable forward(const variable& tokens) override;
  void each_child(const child_visitor& visit) override;
  parameter& token_weight() { return tokens_.weight(); }

 private:
  Embedding tokens_, positions_;
  Dropout dropout_;
};

/// A decoder-only transformer with GPT-2's structure, names and initial weights. Tokens i64, i32 or u8 [B, T]
/// to logits [B, T, vocabulary].
class GPT : public module_of<GPT> {
 public:
  /// Throws std::invalid_argument for numbers below 1 and features that num_heads does not divide.
  explicit GPT(gpt_options options = {});
  variable forward(const variable& tokens) override;
  void each_parameter(const parameter_visitor& visit) override;
  void each_child(const child_visitor& visit) override;
  const gpt_options& options() const { return options_; }

 private:
  gpt_options options_;
  GPTEmbedding embedding_;
  Sequential blocks_;
  LayerNorm norm_;
  parameter head_;  ///< [vocabulary, features], unless tied
};

/// The same model as a Sequential, for pipelines. Weights have the same names as in GPT, the embeddings' with
/// the prefix "transformer.".
Sequential gpt_layers(gpt_options options);

}  // namespace troupe::nn
