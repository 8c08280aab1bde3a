#pragma once
#include <cstdint>
#include <vector>

#include "troupe/nn/module.hpp"

namespace troupe::nn {

struct generate_options {
  int num_tokens = 100;
  double temperature = 1;      ///< 0: greedy, always the most likely token
  int top_k = 0;               ///< sample from this many most likely tokens; 0: all
  std::int64_t context = 128;  ///< maximum number of input tokens
  std::uint64_t seed = 1;
};

/// Samples a continuation of `tokens` from `model` (tokens [1, T] to logits [1, T, V]), without gradients and
/// in evaluation mode. A pure function of weights, tokens and options. Throws std::invalid_argument for empty
/// tokens, a negative temperature, top_k or num_tokens, and context < 1.
std::vector<std::int64_t> generate(Module& model, std::vector<std::int64_t> tokens,
                                   const generate_options& options);

}  // namespace troupe::nn
