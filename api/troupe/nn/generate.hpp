#pragma once
#include <cstdint>
#include <vector>

#include "troupe/nn/module.hpp"

namespace troupe::nn {

struct generate_options {
  int num_tokens = 100;
  double temperature = 1;      ///< 0: always the likeliest token
  int top_k = 0;               ///< choose among so many; 0: all
  std::int64_t context = 128;  ///< most tokens the model looks at
  std::uint64_t seed = 1;
};

/// Continues `tokens` by what `model` (tokens [1, T] to logits [1, T, V]) finds likely, without recording and
/// in evaluation mode. A pure function of weights, tokens and options. Throws std::invalid_argument for no
/// tokens, a negative temperature or num_tokens, and context < 1.
std::vector<std::int64_t> generate(Module& model, std::vector<std::int64_t> tokens,
                                   const generate_options& options);

}  // namespace troupe::nn
