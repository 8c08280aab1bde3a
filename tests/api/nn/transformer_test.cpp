#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>

#include "support/bits.hpp"
#include "support/random_tensor.hpp"
#include "troupe/autograd/autocast.hpp"
#include "troupe/autograd/functions.hpp"
#include "troupe/nn/gpt.hpp"
#include "troupe/optim/adam.hpp"

namespace nn = troupe::nn;
using Catch::Matchers::ContainsSubstring;
using troupe::tensor;
using troupe::testing::same_bits;

namespace {

nn::gpt_options tiny(bool tied) {
  return {
      .vocabulary = 11, .context = 6, .features = 8, .num_layers = 2, .num_heads = 2, .tie_weights = tied};
}

tensor tokens_of(std::vector<std::int64_t> tokens) {
  auto count = static_cast<std::int64_t>(tokens.size());
  return tensor::from(tokens, {1, count});
}

const tensor tokens = tokens_of({3, 1, 4, 1, 5, 9}), next = tokens_of({1, 4, 1, 5, 9, 2});

double loss_of(nn::Module& model) {
  return cross_entropy(model.forward({tokens}), next, 1.0 / 6).loss_sum / 6;
}

}  // namespace

TEST_CASE("a GPT has GPT-2's names, and its number of parameters") {
  nn::GPT model(tiny(true));
  std::vector<std::string> names;
  for (const auto& each : model.named_parameters()) names.push_back(each.name);
  CHECK(names.front() == "wte.weight");
  CHECK(names[1] == "wpe.weight");
  CHECK(names[2] == "h.0.ln_1.weight");
  CHECK(std::ranges::find(names, "h.1.attn.c_attn.bias") != names.end());
  CHECK(std::ranges::find(names, "h.1.mlp.c_proj.weight") != names.end());
  CHECK(names.back() == "ln_f.bias");
  CHECK(nn::GPT(nn::gpt2_124m()).num_parameters() == 124'439'808);
}

TEST_CASE("a GPT's gradients are those of finite differences") {
  auto tied = GENERATE(true, false);
  nn::GPT model(tiny(tied));
  model.materialize(2);
  // The usual weights are so small that differences would drown in rounding.
  for (auto* each : model.parameters())
    for (auto& value : each->value().values<float>()) value *= each->name == "weight" && value != 1 ? 15 : 1;
  cross_entropy(model.forward({tokens}), next, 1.0 / 6).loss.backward();
  for (const auto& [name, target] : model.named_parameters()) {
    auto values = target->value().values<float>();
    for (std::size_t i = 0; i < values.size(); i += 1 + values.size() / 5) {
      constexpr float delta = 2e-3F;
      auto kept = values[i];
      values[i] = kept + delta;
      auto up = loss_of(model);
      values[i] = kept - delta;
      auto down = loss_of(model);
      values[i] = kept;
      CAPTURE(name, i);
      CHECK(std::abs(target->gradient().values<float>()[i] - (up - down) / (2 * delta)) < 2e-3);
    }
  }
}

TEST_CASE("no token attends to a later token") {
  nn::GPT model(tiny(true));
  model.materialize(1);
  auto changed = tokens_of({3, 1, 4, 1, 5, 2});
  auto a = model.forward({tokens}).value.reshape({6, 11}),
       b = model.forward({changed}).value.reshape({6, 11});
  CHECK(same_bits(a.rows(0, 5), b.rows(0, 5)));
  CHECK_FALSE(same_bits(a.rows(5, 1), b.rows(5, 1)));
}

TEST_CASE("the layers of a pipeline compute what the untied model computes") {
  nn::GPT whole(tiny(false));
  auto layers = nn::gpt_layers(tiny(false));
  whole.materialize(1);
  layers.materialize(2);
  auto weights = whole.state_dict();
  for (auto& each : weights)
    if (each.name.starts_with("wte") || each.name.starts_with("wpe")) each.name = "transformer." + each.name;
  layers.load_state_dict(weights);
  CHECK(same_bits(whole.forward({tokens}).value, layers.forward({tokens}).value));
}

TEST_CASE("a GPT learns a sequence by heart, in mixed precision too") {
  auto type = GENERATE(troupe::dtype::f32, troupe::dtype::bf16);
  nn::GPT model(tiny(true));
  model.materialize(1);
  auto optimizer = troupe::optim::AdamW({.lr = 3e-2})(model.named_parameters());
  troupe::autocast precision(type);
  auto before = loss_of(model);
  for (std::uint64_t step = 0; step < 60; ++step) {
    cross_entropy(model.forward({tokens}), next, 1.0 / 6).loss.backward();
    optimizer->apply(step);
  }
  CHECK(before > 2);
  CHECK(loss_of(model) < 0.1);
}

TEST_CASE("inputs that do not fit a GPT are refused with the numbers") {
  nn::GPT model(tiny(true));
  model.materialize(1);
  CHECK_THROWS_WITH(model.forward({tokens_of({1, 2, 3, 4, 5, 6, 7})}),
                    ContainsSubstring("at most 6 tokens") && ContainsSubstring("got 7"));
  CHECK_THROWS_WITH(model.forward({tokens_of({1, 2, 11})}), ContainsSubstring("11"));
  CHECK_THROWS_AS(model.forward({tensor::from(std::vector<std::int64_t>{1, 2}, {2})}), std::invalid_argument);
  CHECK_THROWS_AS(nn::GPT({.features = 10, .num_heads = 3}), std::invalid_argument);
  CHECK_THROWS_AS(nn::GPT({.num_layers = 0}), std::invalid_argument);
}
