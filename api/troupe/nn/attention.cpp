#include "troupe/nn/attention.hpp"

#include "troupe/autograd/functions.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::nn {
namespace {

/// num_heads, once both are known to be possible and three times the features not to overflow.
int checked_heads(std::int64_t features, int num_heads) {
  if (features < 1 || num_heads < 1 || features % num_heads != 0)
    throw_invalid("MultiheadAttention", "features that are a multiple of num_heads, both at least 1",
                  std::to_string(features) + " and " + std::to_string(num_heads));
  static_cast<void>(shape{features});  // throws unless it can be an extent
  return num_heads;
}

}  // namespace

MultiheadAttention::MultiheadAttention(std::int64_t features, int num_heads, attention_layer_options options)
    : num_heads_(checked_heads(features, num_heads)),
      causal_(options.causal),
      projection_(features, 3 * features, {.bias = options.bias, .weight_init = options.projection_init}),
      output_(features, features, {.bias = options.bias, .weight_init = options.output_projection_init}),
      dropout_(options.dropout) {}

variable MultiheadAttention::forward(const variable& input) {
  auto attended = attention(projection_(input), {.num_heads = num_heads_, .causal = causal_});
  return dropout_(output_(attended));
}

void MultiheadAttention::each_child(const child_visitor& visit) {
  visit("c_attn", projection_);
  visit("c_proj", output_);
  visit("dropout", dropout_);
}

}  // namespace troupe::nn
