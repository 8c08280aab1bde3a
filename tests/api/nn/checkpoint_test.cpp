#include "troupe/nn/checkpoint.hpp"

#include <catch2/catch_test_macros.hpp>
#include <stdexcept>

#include "support/bits.hpp"
#include "support/random_tensor.hpp"
#include "troupe/autograd/autocast.hpp"
#include "troupe/autograd/functions.hpp"
#include "troupe/autograd/pass_id.hpp"
#include "troupe/nn/batch_norm.hpp"
#include "troupe/nn/conv2d.hpp"
#include "troupe/nn/dropout.hpp"
#include "troupe/nn/flatten.hpp"
#include "troupe/nn/gpt.hpp"
#include "troupe/nn/linear.hpp"
#include "troupe/nn/tied_linear.hpp"
#include "troupe/optim/adam.hpp"
#include "troupe/tensor/memory.hpp"

namespace nn = troupe::nn;
using troupe::tensor;
using troupe::testing::random_tensor;
using troupe::testing::same_bits;

namespace {

/// What Adam makes of a model in some steps: parameters and running statistics.
std::vector<troupe::named_tensor> trained(nn::Module& model, const tensor& x, const tensor& labels) {
  model.materialize(3);
  auto optimizer = troupe::optim::Adam({.lr = 1e-2})(model.named_parameters());
  for (std::uint64_t step = 0; step < 3; ++step) {
    troupe::pass_scope here(troupe::pass_id{static_cast<std::uint32_t>(step), 0});
    cross_entropy(model.forward({x}), labels, 0.5).loss.backward();
    optimizer->apply(step);
  }
  return model.state_dict();
}

nn::Sequential images_to_features() {
  return nn::Sequential(nn::Conv2d(1, 4, 3), nn::BatchNorm2d(4), nn::Dropout(0.25), nn::Flatten());
}

/// The most activations in a forward and a backward pass.
std::size_t most_activations(nn::Module& model, const tensor& tokens, const tensor& labels) {
  troupe::reset_peak_memory({});
  cross_entropy(model.forward({tokens}), labels, 1).loss.backward();
  return troupe::memory_of({}).peak_by_category[static_cast<int>(troupe::memory_category::activations)];
}

}  // namespace

TEST_CASE("a checkpointed module has the names of the module, and trains to the same bits") {
  auto x = random_tensor({3, 1, 6, 6}, "x");
  auto labels = tensor::from(std::vector<std::int64_t>{0, 1, 2}, {3});
  nn::Sequential plain(images_to_features(), nn::Linear(64, 3));
  nn::Sequential less(nn::Checkpoint(images_to_features()), nn::Linear(64, 3));
  CHECK(less.num_parameters() == plain.num_parameters());
  CHECK(less.cost() == plain.cost());
  CHECK(same_bits(trained(plain, x, labels), trained(less, x, labels)));
  plain.eval();
  less.eval();
  CHECK(same_bits(plain.forward({x}).value, less.forward({x}).value));
}

TEST_CASE("a copy of a checkpointed module has a module of its own") {
  nn::Checkpoint first{nn::Linear(3, 2)};
  first.materialize(1);
  auto second = first.clone();
  auto x = random_tensor({4, 3}, "x");
  CHECK(same_bits(first.forward({x}).value, second->forward({x}).value));
  second->materialize(2);
  CHECK_FALSE(same_bits(first.forward({x}).value, second->forward({x}).value));
  nn::Checkpoint third{nn::Linear(3, 2)};
  third = first;
  CHECK(third.module() != first.module());
  CHECK(same_bits(first.forward({x}).value, third.forward({x}).value));
  CHECK_THROWS_AS(nn::Checkpoint(std::shared_ptr<nn::Module>()), std::invalid_argument);
}

TEST_CASE("a checkpointed layer uses another layer's weight too") {
  nn::Sequential model;
  model.push_back("first", nn::Linear(3, 3, {.bias = false}));
  model.push_back("last", nn::Checkpoint(nn::TiedLinear(3, 3, "first.weight")));
  model.materialize(1);
  CHECK(model.parameters().size() == 1);
  sum(model.forward({random_tensor({2, 3}, "x")})).backward();
  CHECK(model.parameters()[0]->has_gradient);
}

TEST_CASE("a GPT with checkpointed blocks trains to the same bits from fewer activations") {
  nn::gpt_options options{
      .vocabulary = 11, .context = 16, .features = 16, .num_layers = 6, .num_heads = 2, .dropout = 0.1};
  auto tokens = tensor::zeros({2, 16}, troupe::dtype::i64);
  auto next = tensor::from(std::vector<std::int64_t>(32, 1), {2, 16});
  nn::GPT plain(options);
  auto expected = trained(plain, tokens, next);
  auto most = most_activations(plain, tokens, next);
  options.checkpoint_blocks = true;
  nn::GPT less(options);
  CHECK(same_bits(trained(less, tokens, next), expected));
  CHECK(most_activations(less, tokens, next) < most / 2);
  auto layers = nn::gpt_layers(options);
  options.checkpoint_blocks = false;
  auto plain_layers = nn::gpt_layers(options);
  auto names = layers.named_parameters(), plain_names = plain_layers.named_parameters();
  REQUIRE(names.size() == plain_names.size());
  for (std::size_t i = 0; i < names.size(); ++i) CHECK(names[i].name == plain_names[i].name);
}
