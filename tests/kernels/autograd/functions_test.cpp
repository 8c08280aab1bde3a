#include "troupe/autograd/functions.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <stdexcept>

#include "kernels/autograd/finite_differences.hpp"
#include "troupe/ops/convert.hpp"

using namespace troupe;
using troupe::testing::check;
using troupe::testing::make_parameter;
using troupe::testing::placed;
using troupe::testing::random_tensor;

namespace {

const tensor a = random_tensor({2, 3, 4}, "a"), row = random_tensor({4}, "row");
/// Away from 0.
tensor divisor() {
  auto result = random_tensor({3, 1}, "divisor");
  for (auto& each : result.values<float>()) each += each < 0 ? -1.0F : 1.0F;
  return result;
}

}  // namespace

TEST_CASE("recorded arithmetic has the gradients of its operands, broadcast or not") {
  check([](const auto& in) { return add(in[0], in[1]); }, {a.clone(), row.clone()});
  check([](const auto& in) { return subtract(in[0], in[1]); }, {row.clone(), a.clone()});
  check([](const auto& in) { return multiply(in[0], in[1]); }, {a.clone(), row.clone()});
  check([](const auto& in) { return divide(in[0], in[1]); }, {a.clone(), divisor()});
}

TEST_CASE("recorded activations have the gradients of their formulas") {
  auto x = a.clone();
  check([](const auto& in) { return gelu(in[0], gelu_kind::exact); }, {x});
  check([](const auto& in) { return gelu(in[0], gelu_kind::tanh); }, {x});
  check([](const auto& in) { return silu(in[0]); }, {x});
  check([](const auto& in) { return tanh(in[0]); }, {x});
  check([](const auto& in) { return sigmoid(in[0]); }, {x});
  check([](const auto& in) { return softmax(in[0]); }, {x});
  check([](const auto& in) { return log_softmax(in[0]); }, {x});
  philox_stream stream(1, random_purpose::activations, {1, 2, 3});
  check([&](const auto& in) { return dropout(in[0], 0.4, stream); }, {x});
}

TEST_CASE("recorded norms have the gradients of their inputs and parameters") {
  auto weight = make_parameter("weight", {4}), bias = make_parameter("bias", {4});
  check([&](const auto& in) { return layer_norm(in[0], &weight, &bias, 0.1); }, {a.clone()},
        {&weight, &bias});
  check([&](const auto& in) { return layer_norm(in[0], nullptr, nullptr, 0.1); }, {a.clone()});
  auto scale = make_parameter("scale", {4});
  check([&](const auto& in) { return rms_norm(in[0], &scale, 0.1); }, {a.clone()}, {&scale});
  auto channel_weight = make_parameter("channel_weight", {3}),
       channel_bias = make_parameter("channel_bias", {3});
  auto batch = [&](const auto& in) {
    return batch_norm(in[0], channel_weight, channel_bias, {}, {}, {.epsilon = 0.1});
  };
  check(batch, {random_tensor({3, 3, 2, 2}, "images")}, {&channel_weight, &channel_bias});
  auto mean = placed(random_tensor({3}, "mean")), variance = placed(tensor::full({3}, 1.7F));
  auto fixed = [&](const auto& in) {
    return batch_norm_inference(in[0], channel_weight, channel_bias, mean, variance, {.epsilon = 0.1});
  };
  channel_weight.has_gradient = channel_bias.has_gradient = false;
  check(fixed, {random_tensor({3, 3, 2, 2}, "images")}, {&channel_weight, &channel_bias});
}

TEST_CASE("recorded windows and products have the gradients of their inputs and parameters") {
  auto images = random_tensor({2, 2, 4, 4}, "images");
  auto kernel = make_parameter("kernel", {3, 2, 3, 3}), bias = make_parameter("bias", {3});
  check(
      [&](const auto& in) {
        return conv2d(in[0], kernel, &bias, {.padding = {1, 1}});
      },
      {images}, {&kernel, &bias});
  check([](const auto& in) { return max_pool2d(in[0]); }, {images});
  check([](const auto& in) { return avg_pool2d(in[0]); }, {images});
  check([](const auto& in) { return global_avg_pool(in[0]); }, {images});
  check([](const auto& in) { return attention(in[0], {.num_heads = 2, .causal = true}); },
        {random_tensor({1, 3, 12}, "qkv")});
  auto table = make_parameter("table", {5, 3});
  auto indices = placed(tensor::from(std::vector<std::int64_t>{4, 0, 4, 2}, {2, 2}));
  check([&](const auto&) { return embedding(table, indices); }, {}, {&table});
  CHECK_THROWS_WITH(embedding(table, placed(tensor::full({2}, 1))),
                    Catch::Matchers::ContainsSubstring("expected indices of i64, i32 or u8, got f32[2]"));
}

TEST_CASE("recorded losses count and have the gradients of their sums, scaled") {
  auto target = placed(random_tensor(a.shape(), "target"));
  check([&](const auto& in) { return mse_loss(in[0], target, 0.3).loss; }, {a.clone()});
  auto labels = placed(tensor::from(std::vector<std::int64_t>{0, 3, 1, 2, -100, 3}, {2, 3}));
  check([&](const auto& in) { return cross_entropy(in[0], labels, 0.3).loss; }, {a.clone()});
  auto made = mse_loss({placed(a)}, target, 0.5);
  CHECK(made.num_counted == 24);
  CHECK(made.num_correct == 0);
  CHECK(made.loss.value.values<float>()[0] == static_cast<float>(0.5 * made.loss_sum));
}

TEST_CASE("a squared error of different floating dtypes is computed with both as f32") {
  auto half = leaf(cast(placed(a), dtype::bf16));
  auto target = placed(random_tensor(a.shape(), "target"));
  auto mixed = mse_loss(half, target, 1);
  CHECK(mixed.loss_sum == mse_loss({cast(half.value, dtype::f32)}, target, 1).loss_sum);
  mixed.loss.backward();
  CHECK(half.gradient().dtype() == dtype::bf16);
  CHECK_THROWS_AS(mse_loss({placed(a)}, placed(tensor::zeros(a.shape(), dtype::u8)), 1),
                  std::invalid_argument);
}

TEST_CASE("gradients have the dtype of their operand") {
  auto x = leaf(placed(a)), half = leaf(cast(placed(a), dtype::bf16));
  add(x, half).backward(placed(random_tensor(a.shape(), "dy")));
  CHECK(x.gradient().dtype() == dtype::f32);
  CHECK(half.gradient().dtype() == dtype::bf16);
  auto from_half = leaf(cast(placed(a), dtype::f16));
  cast(from_half, dtype::f32).backward(placed(a));
  CHECK(from_half.gradient().dtype() == dtype::f16);
}
