#include "troupe/nn/transformer_block.hpp"

#include <cmath>

#include "troupe/autograd/functions.hpp"
#include "troupe/nn/init.hpp"

namespace troupe::nn {
namespace {

constexpr float usual_deviation = 0.02F;

linear_options projection() {
  return {.weight_init = init::normal(0, usual_deviation), .bias_init = init::constant(0)};
}

/// Initializer of the projections that are added to the residual stream, 2 num_layers times in the model.
initializer residual(const transformer_options& options) {
  return init::normal(0, usual_deviation / std::sqrt(2.0F * static_cast<float>(options.num_layers)));
}

std::int64_t hidden(const transformer_options& options) {
  return options.hidden_features == 0 ? 4 * options.features : options.hidden_features;
}

}  // namespace

TransformerBlock::TransformerBlock(transformer_options options)
    : features_(options.features),
      norm_1_(options.features, options.eps),
      norm_2_(options.features, options.eps),
      attention_(options.features, options.num_heads,
                 {.causal = options.causal,
                  .dropout = options.dropout,
                  .projection_init = init::normal(0, usual_deviation),
                  .output_projection_init = residual(options)}),
      up_(options.features, hidden(options), projection()),
      down_(hidden(options), options.features,
            {.weight_init = residual(options), .bias_init = init::constant(0)}),
      gelu_(options.gelu),
      dropout_(options.dropout) {}

variable TransformerBlock::forward(const variable& input) {
  auto x = add(input, attention_(norm_1_(input)));
  auto hidden = gelu(up_(norm_2_(x)), gelu_);
  return add(x, dropout_(down_(hidden)));
}

void TransformerBlock::each_child(const child_visitor& visit) {
  visit("ln_1", norm_1_);
  visit("attn", attention_);
  visit("ln_2", norm_2_);
  visit("mlp.c_fc", up_);
  visit("mlp.c_proj", down_);
  visit("mlp.dropout", dropout_);
}

double TransformerBlock::cost() const {
  auto width = static_cast<double>(features_);
  return Module::cost() + 2 * width * width;
}

}  // namespace troupe::nn
