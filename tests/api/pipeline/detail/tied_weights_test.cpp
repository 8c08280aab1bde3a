#include "troupe/pipeline/detail/tied_weights.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "api/pipeline/pipeline.hpp"
#include "support/bits.hpp"
#include "troupe/autograd/functions.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/nn/embedding.hpp"
#include "troupe/nn/gpt.hpp"
#include "troupe/nn/tied_linear.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace troupe;
using troupe::testing::forward_of;
using troupe::testing::input_gradient_of;
using troupe::testing::num_microbatches;
using troupe::testing::pipeline;
using troupe::testing::same_bits;

namespace {

constexpr std::int64_t vocabulary = 13, length = 5;

nn::gpt_options tiny() {
  return {.vocabulary = vocabulary, .context = length, .features = 8, .num_layers = 3, .num_heads = 2};
}

/// Tokens of one microbatch [2, T], or those that follow them.
tensor tokens_of(std::uint64_t step, int index, int ahead = 0) {
  std::vector<std::int64_t> tokens;
  for (std::int64_t i = 0; i < 2 * length; ++i)
    tokens.push_back((i * i + 3 * (i + ahead) + index + static_cast<std::int64_t>(step)) % vocabulary);
  return tensor::from(tokens, {2, length});
}

pipeline gpt(int num_stages, const numeric_options& numerics = {}) {
  return pipeline(num_stages, optim::AdamW({.lr = 1e-2}), nn::gpt_layers(tiny()), numerics);
}

void train(pipeline& model, std::uint64_t step) {
  for (int index = 0; index < num_microbatches; ++index)
    model.forward(pipeline::which(step, index), tokens_of(step, index), tokens_of(step, index, 1));
  for (int index = 0; index < num_microbatches; ++index) model.backward(step, index);
  model.apply(step);
}

tensor find(const std::vector<named_tensor>& all, const std::string& name) {
  for (const auto& each : all)
    if (each.name == name) return each.value;
  return {};
}

}  // namespace

TEST_CASE("a GPT with tied weights has the same bits for every partition, in every precision") {
  for (numeric_options numerics : {numeric_options{}, numeric_options{.precision = dtype::bf16},
                                   numeric_options{.precision = dtype::f16, .clip_grad_norm = 0.1}}) {
    auto trained = [&](int num_stages) {
      auto model = gpt(num_stages, numerics);
      for (std::uint64_t step = 0; step < 3; ++step) train(model, step);
      return model.parameters();
    };
    auto whole = trained(1);
    CHECK(whole.size() == 2 + 3 * 12 + 2);
    for (int stages : {2, 3, 5}) {
      auto cut = trained(stages);
      std::ranges::sort(cut, {}, &named_tensor::name);
      std::ranges::sort(whole, {}, &named_tensor::name);
      CHECK(same_bits(cut, whole));
    }
  }
}

TEST_CASE("both copies of a tied weight start equal, stay equal, are trained and count once") {
  auto model = gpt(3);
  auto copies = [&] {
    return std::pair(find(model.at(0).state(), "transformer.wte.weight"),
                     find(model.at(2).state(), "transformer.wte.weight"));
  };
  auto [first, last] = copies();
  REQUIRE(first.defined());
  REQUIRE(last.defined());
  CHECK(same_bits(first, last));
  auto before = first.clone();
  for (std::uint64_t step = 0; step < 2; ++step) train(model, step);
  CHECK(same_bits(first, last));
  CHECK_FALSE(same_bits(first, before));
  for (const auto* kept : {"/exp_avg", "/exp_avg_sq"})
    CHECK(same_bits(find(model.at(0).state(), std::string("transformer.wte.weight") + kept),
                    find(model.at(2).state(), std::string("transformer.wte.weight") + kept)));
  CHECK(find(model.at(0).parameters(), "transformer.wte.weight").defined());
  CHECK_FALSE(find(model.at(2).parameters(), "transformer.wte.weight").defined());
  CHECK_FALSE(find(model.at(2).state(), "lm_head.weight").defined());
}

TEST_CASE("one microbatch in a pipeline steps as the plain model does") {
  nn::GPT plain(tiny());
  plain.materialize(42);
  auto layers = nn::gpt_layers(tiny());
  pipeline staged(2, optim::AdamW({.lr = 1e-2}), layers);
  for (int stage : {0, 1}) {
    auto state = staged.at(stage).state();
    for (auto& each : plain.state_dict())
      for (const auto* prefix : {"", "transformer."})
        if (auto target = find(state, prefix + each.name); target.defined()) target.copy_from(each.value);
  }
  auto optimizer = optim::AdamW({.lr = 1e-2})(plain.named_parameters());
  // Each token once: a sum of two rows would be rounded in another order.
  auto inputs = tensor::from(std::vector<std::int64_t>{9, 8, 7, 6, 5, 4, 3, 2, 1, 0}, {2, length});
  auto targets = tokens_of(0, 0, 1);
  program::microbatch alone{0, 0, 1, true};
  auto hidden = forward_of(staged.at(0), alone, inputs, {});
  forward_of(staged.at(1), alone, hidden, targets);
  auto gradient = input_gradient_of(staged.at(1), alone, {});
  staged.at(1).backward_weight(alone);
  input_gradient_of(staged.at(0), alone, gradient);
  staged.at(0).backward_weight(alone);
  staged.apply(0);
  cross_entropy(plain.forward({inputs}), targets, 1.0 / (2 * length)).loss.backward();
  optimizer->apply(0);
  for (const auto& each : staged.parameters()) {
    INFO(each.name);
    auto name = each.name.starts_with("transformer.") ? each.name.substr(12) : each.name;
    CHECK(same_bits(each.value, find(plain.state_dict(), name)));
  }
}

TEST_CASE("a restored stage goes on with the same bits, and an interrupted step leaves no trace") {
  auto continued = gpt(3), restored = gpt(3);
  train(continued, 0);
  for (int stage : {0, 1, 2}) {
    std::vector<named_tensor> saved;
    for (const auto& [name, value] : continued.at(stage).state()) saved.push_back({name, value.clone()});
    restored.at(stage).load_state(saved);
  }
  for (int index = 0; index < num_microbatches; ++index)
    restored.forward(pipeline::which(1, index), tokens_of(7, index), tokens_of(8, index));
  for (int index = 0; index < num_microbatches; ++index) restored.backward(1, index);
  restored.at(0).partial_for_reduction(0);
  for (int stage : {0, 1, 2}) restored.at(stage).discard();
  restored.take_metrics();
  for (auto* model : {&continued, &restored}) train(*model, 1);
  CHECK(same_bits(continued.parameters(), restored.parameters()));
  CHECK(continued.take_metrics().num_samples == 2 * restored.take_metrics().num_samples);
}

TEST_CASE("only the stages that hold a tied weight exchange its gradients") {
  auto model = nn::gpt_layers(tiny());
  auto reductions = [&](int stages, const numeric_options& numerics = {}) {
    return detail::reductions_of(model, partition_into_stages(model, stages), numerics);
  };
  CHECK(reductions(1).all.empty());
  CHECK(reductions(4).all == std::vector<schedule::reduction>{{{0, 3}, true}});
  CHECK(reductions(4, {.clip_grad_norm = 1}).all ==
        std::vector<schedule::reduction>{{{0, 3}, true}, {0, 1, 2, 3}});
  CHECK(reductions(4, {.clip_grad_norm = 1}).norms == 1);
  auto untied = tiny();
  untied.tie_weights = false;
  auto apart = nn::gpt_layers(untied);
  CHECK(detail::tied_weights_of(apart).empty());
  CHECK(detail::reductions_of(apart, partition_into_stages(apart, 4), {}).all.empty());
}

TEST_CASE("three uses of one weight are added in the order of the layers, wherever they are") {
  auto model = [] {
    nn::Sequential layers;
    layers.push_back("embed", nn::Embedding(vocabulary, vocabulary, nn::init::normal(0, 0.3F)));
    layers.push_back("mid", nn::Linear(vocabulary, vocabulary));
    layers.push_back("again", nn::TiedLinear(vocabulary, vocabulary, "embed.weight"));
    layers.push_back("more", nn::Linear(vocabulary, vocabulary));
    layers.push_back("head", nn::TiedLinear(vocabulary, vocabulary, "embed.weight"));
    return layers;
  };
  auto ties = detail::tied_weights_of(model());
  REQUIRE(ties.size() == 1);
  CHECK(ties[0].name == "embed.weight");
  REQUIRE(ties[0].uses.size() == 3);
  CHECK(ties[0].uses[1].name == "again.weight");
  CHECK(ties[0].uses[2].layer == 4);
  auto trained = [&](int stages) {
    pipeline run(stages, optim::AdamW({.lr = 1e-2}), model());
    for (std::uint64_t step = 0; step < 3; ++step) train(run, step);
    return find(run.parameters(), "embed.weight");
  };
  auto whole = trained(1);
  CHECK(same_bits(trained(2), whole));
  CHECK(same_bits(trained(3), whole));
}

TEST_CASE("a Sequential uses the tied weight itself, once, and so does its copy") {
  auto layers = nn::gpt_layers(tiny());
  auto copy = layers;
  for (auto* each : {&layers, &copy}) {
    each->materialize(1);
    CHECK(each->num_parameters() == nn::GPT(tiny()).num_parameters());
    CHECK_FALSE(find(each->state_dict(), "lm_head.weight").defined());
  }
  auto before = layers.forward({tokens_of(0, 0)}).value;
  CHECK(same_bits(copy.forward({tokens_of(0, 0)}).value, before));
  find(copy.state_dict(), "transformer.wte.weight").fill_zero();
  CHECK(same_bits(copy.forward({tokens_of(0, 0)}).value, tensor::zeros({2, length, vocabulary})));
  CHECK(same_bits(layers.forward({tokens_of(0, 0)}).value, before));
}

TEST_CASE("a weight to be tied that is missing or does not fit is named") {
  nn::Sequential layers;
  CHECK_THROWS_WITH(layers.push_back("head", nn::TiedLinear(4, 6, "embed.weight")),
                    ContainsSubstring("embed.weight[6, 4]") && ContainsSubstring("got none"));
  CHECK(layers.size() == 0);
  layers.push_back("embed", nn::Embedding(5, 4));
  CHECK_THROWS_WITH(layers.push_back("head", nn::TiedLinear(4, 6, "embed.weight")),
                    ContainsSubstring("[5, 4]"));
  CHECK_THROWS_AS(nn::TiedLinear(0, 6, "embed.weight"), std::invalid_argument);
}
