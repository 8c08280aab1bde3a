#include "troupe/nn/gpt.hpp"

#include <numeric>

#include "troupe/autograd/functions.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/nn/checkpoint.hpp"
#include "troupe/nn/init.hpp"
#include "troupe/nn/tied_linear.hpp"

namespace troupe::nn {
namespace {

const gpt_options& checked(const gpt_options& options) {
  if (options.vocabulary < 1 || options.context < 1 || options.features < 1 || options.num_layers < 1)
    throw_invalid("GPT", "vocabulary, context, features and num_layers of at least 1",
                  std::to_string(options.vocabulary) + ", " + std::to_string(options.context) + ", " +
                      std::to_string(options.features) + " and " + std::to_string(options.num_layers));
  return options;
}

std::shared_ptr<Module> block_of(const gpt_options& options) {
  auto block = std::make_shared<TransformerBlock>(transformer_options{.features = options.features,
                                                                      .num_heads = options.num_heads,
                                                                      .dropout = options.dropout,
                                                                      .gelu = options.gelu,
                                                                      .num_layers = options.num_layers});
  if (options.checkpoint_blocks) return std::make_shared<Checkpoint>(std::move(block));
  return block;
}

}  // namespace

gpt_options gpt2_124m() {
  return {.vocabulary = 50257, .context = 1024, .features = 768, .num_layers = 12, .num_heads = 12};
}

GPTEmbedding::GPTEmbedding(const gpt_options& options)
    : tokens_(options.vocabulary, options.features, init::normal(0, 0.02F)),
      positions_(options.context, options.features, init::normal(0, 0.02F)),
      dropout_(options.dropout) {}

variable GPTEmbedding::forward(const variable& tokens) {
  if (tokens.value.shape().rank() != 2) throw_invalid("GPT", "tokens [B, T]", describe(tokens.value));
  auto& table = positions_.weight();
  auto length = tokens.value.shape()[1];
  if (length > table.extents[0])
    throw_invalid("GPT",
                  "at most " + std::to_string(table.extents[0]) + " tokens in a sequence (its context)",
                  std::to_string(length));
  std::vector<std::int64_t> places(static_cast<std::size_t>(length));
  std::iota(places.begin(), places.end(), 0);
  auto positions = embedding(table, tensor::from(places, {length}).to(tokens.value.device()));
  return dropout_(add(tokens_(tokens), positions));
}

void GPTEmbedding::each_child(const child_visitor& visit) {
  visit("wte", tokens_);
  visit("wpe", positions_);
  visit("drop", dropout_);
}

GPT::GPT(gpt_options options)
    : options_(checked(options)),
      embedding_(options),
      norm_(options.features),
      head_("lm_head.weight", {options.vocabulary, options.features}, init::normal(0, 0.02F)) {
  for (int layer = 0; layer < options.num_layers; ++layer)
    blocks_.push_back("h." + std::to_string(layer), block_of(options));
}

variable GPT::forward(const variable& tokens) {
  auto x = norm_(blocks_(embedding_(tokens)));
  return linear(x, options_.tie_weights ? embedding_.token_weight() : head_, nullptr);
}

void GPT::each_parameter(const parameter_visitor& visit) {
  if (!options_.tie_weights) visit(head_);
}

void GPT::each_child(const child_visitor& visit) {
  embedding_.each_child(visit);
  blocks_.each_child(visit);
  visit("ln_f", norm_);
}

Sequential gpt_layers(gpt_options options) {
  checked(options);
  Sequential layers;
  layers.push_back("transformer", GPTEmbedding(options));
  for (int layer = 0; layer < options.num_layers; ++layer)
    layers.push_back("h." + std::to_string(layer), block_of(options));
  layers.push_back("ln_f", LayerNorm(options.features));
  if (options.tie_weights)
    layers.push_back("lm_head", TiedLinear(options.features, options.vocabulary, "transformer.wte.weight"));
  else
    layers.push_back("lm_head", Linear(options.features, options.vocabulary,
                                       {.bias = false, .weight_init = init::normal(0, 0.02F)}));
  return layers;
}

}  // namespace troupe::nn
