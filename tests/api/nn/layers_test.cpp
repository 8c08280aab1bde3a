#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "support/bits.hpp"
#include "support/random_tensor.hpp"
#include "troupe/autograd/checkpoint.hpp"
#include "troupe/autograd/functions.hpp"
#include "troupe/autograd/pass_id.hpp"
#include "troupe/nn/activation.hpp"
#include "troupe/nn/batch_norm.hpp"
#include "troupe/nn/conv2d.hpp"
#include "troupe/nn/dropout.hpp"
#include "troupe/nn/embedding.hpp"
#include "troupe/nn/linear.hpp"
#include "troupe/nn/norm.hpp"
#include "troupe/nn/pooling.hpp"
#include "troupe/nn/reshape.hpp"
#include "troupe/nn/sequential.hpp"
#include "troupe/nn/softmax.hpp"

namespace nn = troupe::nn;
using Catch::Matchers::ContainsSubstring;
using troupe::tensor;
using troupe::testing::random_tensor;
using troupe::testing::same_bits;

namespace {

double mean_of(const tensor& values) {
  auto all = values.values<float>();
  return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
}

tensor dropped(nn::Module& layer, const tensor& x, std::uint32_t step, std::uint32_t microbatch) {
  troupe::pass_scope place(troupe::pass_id{step, microbatch});
  return layer.forward({x}).value;
}

}  // namespace

TEST_CASE("a CNN's shapes, names and buffers are those of PyTorch") {
  nn::Sequential model(nn::Reshape({1, 8, 8}), nn::Conv2d(1, 4, 3, {.padding = 1}), nn::BatchNorm2d(4),
                       nn::ReLU(), nn::MaxPool2d(2), nn::Conv2d(4, 6, 3, {.bias = false}),
                       nn::GlobalAvgPool2d());
  model.materialize(1);
  std::vector<std::string> names;
  for (const auto& each : model.state_dict()) names.push_back(each.name + " " + describe(each.value));
  CHECK(names == std::vector<std::string>{"1.weight f32[4, 1, 3, 3]", "1.bias f32[4]", "2.weight f32[4]",
                                          "2.bias f32[4]", "5.weight f32[6, 4, 3, 3]",
                                          "2.running_mean f32[4]", "2.running_var f32[4]"});
  auto y = model.forward({random_tensor({5, 64}, "x")});
  CHECK(y.value.shape() == troupe::shape{5, 6, 1, 1});
}

TEST_CASE("batch norm moves its running statistics in training and uses them in evaluation") {
  nn::BatchNorm2d layer(3, {.momentum = 1});
  layer.materialize(1);
  auto x = random_tensor({8, 3, 4, 4}, "x");
  auto trained = layer.forward({x}).value;
  CHECK(std::abs(mean_of(trained)) < 1e-6);
  auto saved = layer.named_buffers()[0].target->value.clone();
  CHECK_FALSE(same_bits(saved, tensor::zeros({3})));
  layer.eval();
  auto evaluated = layer.forward({x}).value;
  CHECK(same_bits(layer.named_buffers()[0].target->value, saved));
  for (std::size_t i = 0; i < evaluated.values<float>().size(); ++i)
    REQUIRE(std::abs(evaluated.values<float>()[i] - trained.values<float>()[i]) < 0.05);
}

TEST_CASE("layers without parameters compute the functions of the same names") {
  troupe::variable x{random_tensor({3, 5}, "x")};
  CHECK(same_bits(nn::ReLU().forward(x).value, relu(x).value));
  CHECK(same_bits(nn::GELU().forward(x).value, gelu(x).value));
  CHECK(same_bits(nn::SiLU().forward(x).value, silu(x).value));
  CHECK(same_bits(nn::Tanh().forward(x).value, tanh(x).value));
  CHECK(same_bits(nn::Sigmoid().forward(x).value, sigmoid(x).value));
  CHECK(same_bits(nn::Softmax().forward(x).value, softmax(x).value));
  CHECK(same_bits(nn::LogSoftmax().forward(x).value, log_softmax(x).value));
}

TEST_CASE("dropout depends only on seed, name, step and microbatch") {
  nn::Sequential model{nn::Dropout(0.25), nn::Dropout(0.25)};
  model.materialize(3);
  auto x = tensor::full({10'000}, 1);
  auto& first = *model[0];
  auto y = dropped(first, x, 5, 2);
  CHECK(std::abs(mean_of(y) - 1) < 0.02);
  CHECK(same_bits(y, dropped(first, x, 5, 2)));
  CHECK_FALSE(same_bits(y, dropped(first, x, 6, 2)));
  CHECK_FALSE(same_bits(y, dropped(first, x, 5, 3)));
  CHECK_FALSE(same_bits(y, dropped(*model[1], x, 5, 2)));
  CHECK_FALSE(same_bits(first.forward({x}).value, first.forward({x}).value));  // a place of its own each time
  model.eval();
  CHECK(same_bits(model.forward({x}).value, x));
}

TEST_CASE("a checkpointed segment draws the same random numbers again") {
  nn::Dropout layer(0.5);
  layer.materialize(1);
  auto x = troupe::leaf(tensor::full({1000}, 1));
  auto y = troupe::checkpoint([&](const troupe::variable& v) { return layer.forward(v); }, x);
  y.backward(tensor::full({1000}, 1));
  CHECK(same_bits(x.gradient(), y.value));
}

TEST_CASE("a user-defined module is copied, named and trained like any other") {
  class Mine : public nn::module_of<Mine> {
   public:
    troupe::variable forward(const troupe::variable& x) override { return add(x, inner_.forward(x)); }
    void each_child(const child_visitor& visit) override { visit("inner", inner_); }

   private:
    nn::Linear inner_{4, 4};
  };
  Mine mine;
  mine.materialize(1);
  CHECK(mine.num_parameters() == 20);
  CHECK(mine.named_parameters("x.")[0].name == "x.inner.weight");
  auto copy = mine.clone();
  copy->materialize(2);
  auto x = random_tensor({2, 4}, "x");
  CHECK_FALSE(same_bits(mine.forward({x}).value, copy->forward({x}).value));
  copy->load_state_dict(mine.state_dict());
  CHECK(same_bits(mine.forward({x}).value, copy->forward({x}).value));
  mine.forward({x}).backward(random_tensor({2, 4}, "dy"));
  for (auto* each : mine.parameters()) CHECK(each->has_gradient);
}

TEST_CASE("a state that does not fit changes nothing and says why") {
  nn::Linear layer(3, 2);
  layer.materialize(1);
  auto before = layer.parameters()[0]->value().clone();
  auto saved = layer.state_dict();
  saved[0].value = random_tensor({2, 3}, "other");
  saved[1].value = random_tensor({3}, "wrong");
  CHECK_THROWS_WITH(layer.load_state_dict(saved), ContainsSubstring("bias is f32[3], expected f32[2]"));
  CHECK_THROWS_WITH(layer.load_state_dict({}), ContainsSubstring("missing tensor weight, bias"));
  CHECK(same_bits(layer.parameters()[0]->value(), before));
}

TEST_CASE("layers with invalid options are refused") {
  CHECK_THROWS_AS(nn::Conv2d(3, 4, 0), std::invalid_argument);
  CHECK_THROWS_WITH(nn::Conv2d(3, 4, 3, {.groups = 2}), ContainsSubstring("multiples of groups 2"));
  CHECK_THROWS_AS(nn::MaxPool2d(0), std::invalid_argument);
  CHECK_THROWS_AS(nn::Dropout(1), std::invalid_argument);
  CHECK_THROWS_AS(nn::Embedding(0, 3), std::invalid_argument);
}

namespace {

/// A linear layer of one's own, twice as large as the usual one's.
class doubled_linear : public nn::Linear {
 public:
  using nn::Linear::Linear;
  troupe::variable forward(const troupe::variable& input) override {
    auto y = nn::Linear::forward(input);
    return add(y, y);
  }
};

/// Keeps a tenth of what is negative.
class leaky_relu : public nn::ReLU {
 public:
  troupe::variable forward(const troupe::variable& input) override {
    return subtract(relu(input),
                    multiply(relu(multiply(input, {tensor::full({}, -1)})), {tensor::full({}, 0.1F)}));
  }
};

tensor one_by_one(const nn::Sequential& model, const tensor& x) {
  troupe::variable value{x};
  for (int i = 0; i < model.size(); ++i) value = model[i]->forward(value);
  return value.value;
}

}  // namespace

TEST_CASE("a model run as a whole has the bits of its layers run one by one, with relu fused or not") {
  nn::Sequential model(nn::Conv2d(2, 5, 3), nn::ReLU(), nn::ReLU(), nn::Reshape({180}), nn::Linear(180, 33),
                       nn::ReLU(), nn::Linear(33, 8, {.bias = false}), nn::ReLU(), nn::Linear(8, 4));
  model.materialize(3);
  auto x = random_tensor({7, 2, 8, 8}, "x");
  CHECK(same_bits(model.forward({x}).value, one_by_one(model, x)));
  nn::Sequential own(std::make_shared<doubled_linear>(6, 5), nn::ReLU(), nn::Linear(5, 4),
                     std::make_shared<leaky_relu>());
  own.materialize(3);
  auto rows = random_tensor({9, 6}, "rows");
  CHECK(same_bits(own.forward({rows}).value, one_by_one(own, rows)));
}

TEST_CASE("batch norm in evaluation passes gradients on and keeps its statistics") {
  nn::Sequential model(nn::Conv2d(1, 2, 3), nn::BatchNorm2d(2));
  model.materialize(1);
  model.eval();
  auto x = troupe::leaf(random_tensor({2, 1, 5, 5}, "x"));
  auto dy = random_tensor({2, 2, 3, 3}, "dy");
  auto before = model.named_buffers()[1].target->value.clone();
  auto y = model.forward(x);
  y.backward(dy);
  CHECK(x.gradient().defined());
  for (auto* each : model.parameters()) CHECK(each->has_gradient);
  CHECK(same_bits(model.named_buffers()[1].target->value, before));
  // With mean 0, variance 1 and weight 1 the convolution's bias gets dy / sqrt(1 + epsilon).
  double expected = 0;
  for (std::size_t i = 0; i < 36; ++i) expected += i / 9 % 2 == 0 ? dy.values<float>()[i] : 0;
  CHECK(std::abs(model.parameters()[1]->gradient().values<float>()[0] - expected / std::sqrt(1 + 1e-5)) <
        1e-5);
}
