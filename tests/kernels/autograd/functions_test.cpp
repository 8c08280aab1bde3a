#include "troupe/autograd/functions.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <functional>

#include "support/bits.hpp"
#include "support/random_tensor.hpp"
#include "troupe/autograd/autocast.hpp"
#include "troupe/ops/convert.hpp"

using namespace troupe;
using troupe::testing::random_tensor;
using troupe::testing::same_bits;

namespace {

/// The sum of y times fixed numbers, in f64.
double weighted(const tensor& y, const tensor& weights) {
  double sum = 0;
  for (std::size_t i = 0; i < y.values<float>().size(); ++i)
    sum += double{y.values<float>()[i]} * weights.values<float>()[i];
  return sum;
}

using function = std::function<variable(const std::vector<variable>&)>;

/// Compares what `values` (inputs' or parameters' elements, in place) have as gradients with differences.
void check_gradient(tensor values, const tensor& gradient, const std::function<double()>& loss) {
  REQUIRE(gradient.defined());
  REQUIRE(gradient.extents() == values.extents());
  constexpr float delta = 4e-3F;
  for (std::size_t i = 0; i < values.values<float>().size(); ++i) {
    auto& at = values.values<float>()[i];
    auto kept = at;
    at = kept + delta;
    auto up = loss();
    at = kept - delta;
    auto down = loss();
    at = kept;
    CAPTURE(i);
    CHECK(std::abs(gradient.values<float>()[i] - (up - down) / (2 * delta)) < 4e-3);
  }
}

void check(const function& compute, const std::vector<tensor>& inputs,
           const std::vector<parameter*>& parameters = {}) {
  std::vector<variable> leaves, constants;
  for (const auto& each : inputs) {
    leaves.push_back(leaf(each));
    constants.push_back({each});
  }
  auto y = compute(leaves);
  auto weights = random_tensor(y.value.extents(), "weights");
  y.backward(weights);
  auto loss = [&] { return weighted(compute(constants).value, weights); };
  for (std::size_t i = 0; i < inputs.size(); ++i) check_gradient(inputs[i], leaves[i].gradient(), loss);
  for (auto* each : parameters) check_gradient(each->value, each->gradient, loss);
}

parameter make(const std::string& name, const shape& extents) {
  return {name, random_tensor(extents, name), tensor::zeros(extents)};
}

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
  auto weight = make("weight", {4}), bias = make("bias", {4});
  check([&](const auto& in) { return layer_norm(in[0], &weight, &bias, 0.1); }, {a.clone()},
        {&weight, &bias});
  check([&](const auto& in) { return layer_norm(in[0], nullptr, nullptr, 0.1); }, {a.clone()});
  auto scale = make("scale", {4});
  check([&](const auto& in) { return rms_norm(in[0], &scale, 0.1); }, {a.clone()}, {&scale});
  auto channel_weight = make("channel_weight", {3}), channel_bias = make("channel_bias", {3});
  auto batch = [&](const auto& in) {
    return batch_norm(in[0], channel_weight, channel_bias, {}, {}, {.epsilon = 0.1});
  };
  check(batch, {random_tensor({3, 3, 2, 2}, "images")}, {&channel_weight, &channel_bias});
}

TEST_CASE("recorded windows and products have the gradients of their inputs and parameters") {
  auto images = random_tensor({2, 2, 4, 4}, "images");
  auto kernel = make("kernel", {3, 2, 3, 3}), bias = make("bias", {3});
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
  auto table = make("table", {5, 3});
  auto indices = tensor::from(std::vector<std::int64_t>{4, 0, 4, 2}, {2, 2});
  check([&](const auto&) { return embedding(table, indices); }, {}, {&table});
}

namespace {

/// y, dx and the parameters' gradients.
std::vector<tensor> forwards_and_back(const std::function<variable(const variable&)>& compute,
                                      const tensor& x, const std::vector<parameter*>& parameters) {
  auto in = leaf(x);
  auto y = compute(in);
  y.backward(cast(random_tensor(y.value.extents(), "dy"), y.value.type()));
  std::vector<tensor> result{y.value, in.gradient()};
  for (auto* each : parameters) {
    result.push_back(each->gradient.clone());
    each->stepped();
  }
  return result;
}

bool agree(const std::vector<tensor>& a, const std::vector<tensor>& b) {
  return std::ranges::equal(a, b, [](const tensor& x, const tensor& y) { return same_bits(x, y); });
}

}  // namespace

TEST_CASE("a relu in the pass of a product has the bits of one that follows, and its gradients") {
  auto weight = make("weight", {37, 50}), bias = make("bias", {37});
  auto kernel = make("kernel", {9, 3, 3, 3}), kernel_bias = make("kernel_bias", {9});
  auto rows = random_tensor({21, 50}, "rows"), images = random_tensor({2, 3, 11, 7}, "images");
  conv2d_options with_relu{.padding = {1, 1}, .relu = true}, without{.padding = {1, 1}};
  for (auto type : {dtype::f32, dtype::bf16}) {
    autocast mixed(type);
    auto fused = forwards_and_back([&](const auto& x) { return linear_relu(x, weight, &bias); }, rows,
                                   {&weight, &bias});
    auto apart = forwards_and_back([&](const auto& x) { return relu(linear(x, weight, &bias)); }, rows,
                                   {&weight, &bias});
    CHECK(agree(fused, apart));
    fused = forwards_and_back([&](const auto& x) { return conv2d(x, kernel, &kernel_bias, with_relu); },
                              images, {&kernel, &kernel_bias});
    apart = forwards_and_back([&](const auto& x) { return relu(conv2d(x, kernel, &kernel_bias, without)); },
                              images, {&kernel, &kernel_bias});
    CHECK(agree(fused, apart));
  }
}

TEST_CASE("gradients come back in the dtype of what they belong to") {
  auto x = leaf(a), half = leaf(cast(a, dtype::bf16));
  add(x, half).backward(random_tensor(a.extents(), "dy"));
  CHECK(x.gradient().type() == dtype::f32);
  CHECK(half.gradient().type() == dtype::bf16);
  auto from_half = leaf(cast(a, dtype::f16));
  cast(from_half, dtype::f32).backward(a);
  CHECK(from_half.gradient().type() == dtype::f16);
}
