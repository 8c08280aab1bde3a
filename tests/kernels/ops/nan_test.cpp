#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "kernels/ops/activations.hpp"
#include "support/conversions.hpp"
#include "support/devices.hpp"
#include "troupe/ops/activation.hpp"
#include "troupe/ops/attention.hpp"
#include "troupe/ops/batch_norm.hpp"
#include "troupe/ops/conv2d.hpp"
#include "troupe/ops/convert.hpp"
#include "troupe/ops/cross_entropy.hpp"
#include "troupe/ops/dropout.hpp"
#include "troupe/ops/elementwise.hpp"
#include "troupe/ops/linear.hpp"
#include "troupe/ops/matmul.hpp"
#include "troupe/ops/mse_loss.hpp"
#include "troupe/ops/norm.hpp"
#include "troupe/ops/pooling.hpp"
#include "troupe/ops/reduction.hpp"
#include "troupe/ops/softmax.hpp"

using troupe::dtype;
using troupe::tensor;
using troupe::testing::floating_types;
using troupe::testing::placed;
using troupe::testing::random_tensor;
using troupe::testing::values_of;

namespace {

constexpr float quiet_nan = std::numeric_limits<float>::quiet_NaN();

/// Random elements of which number 0 is NaN.
tensor with_nan(const troupe::shape& extents, dtype type) {
  auto made = random_tensor(extents, "x");
  made.values<float>()[0] = quiet_nan;
  return placed(cast(made, type));
}

bool is_nan_at_0(const tensor& x) { return std::isnan(values_of(x)[0]); }

using function = std::function<tensor(const tensor& x)>;
struct named_function {
  std::string name;
  function apply;
};

/// Functions for which element 0 of the result depends on element 0 of x, of shape [4, 8].
std::vector<named_function> functions() {
  auto ones = [](const tensor& like) { return placed(cast(tensor::full(like.shape(), 1), like.dtype())); };
  std::vector<named_function> all{
      {"relu", [](const tensor& x) { return relu_forward(x); }},
      {"relu_backward", [ones](const tensor& x) { return relu_backward(x, ones(x)); }},
      {"exp", [](const tensor& x) { return exp(x); }},
      {"log", [](const tensor& x) { return log(x); }},
      {"sqrt", [](const tensor& x) { return sqrt(x); }},
      {"abs", [](const tensor& x) { return abs(x); }},
      {"reciprocal", [](const tensor& x) { return reciprocal(x); }},
      {"clamp", [](const tensor& x) { return clamp(x, -1, 1); }},
      {"maximum", [ones](const tensor& x) { return maximum(x, ones(x)); }},
      {"minimum", [ones](const tensor& x) { return minimum(ones(x), x); }},
      {"add", [ones](const tensor& x) { return add(x, ones(x)); }},
      {"multiply by 0", [](const tensor& x) { return multiply(x, 0); }},
      {"sum", [](const tensor& x) { return sum(x); }},
      {"mean", [](const tensor& x) { return mean(x, {.axes = {1}}); }},
      {"max", [](const tensor& x) { return max(x, {.axes = {1}}); }},
      {"min", [](const tensor& x) { return min(x); }},
      {"softmax", [](const tensor& x) { return softmax_forward(x); }},
      {"log_softmax", [](const tensor& x) { return log_softmax_forward(x); }},
      {"layer_norm", [](const tensor& x) { return layer_norm_forward(x, {}, {}, 1e-5).y; }},
      {"rms_norm", [](const tensor& x) { return rms_norm_forward(x, {}, 1e-5).y; }},
      {"batch_norm", [](const tensor& x) { return batch_norm_forward(x, {}, {}, {}, {}).y; }},
      {"matmul", [ones](const tensor& x) { return matmul(x, ones(x), {.transpose_b = true}); }},
      {"linear", [ones](const tensor& x) { return linear_forward(x, ones(x), {}); }},
      {"linear with relu",
       [ones](const tensor& x) { return linear_forward(x, ones(x), {}, troupe::linear_activation::relu); }},
      {"cross_entropy_backward",
       [](const tensor& x) {
         auto labels = placed(tensor::from(std::vector<std::int64_t>{0, 1, 2, 3}, {4}));
         auto result = cross_entropy_forward(x, labels);
         CHECK(std::isnan(result.loss_sum));
         return cross_entropy_backward(x, labels, result.log_sum_exp, 1);
       }},
      {"mse_loss_backward",
       [ones](const tensor& x) {
         CHECK(std::isnan(mse_loss_forward(x, ones(x))));
         return mse_loss_backward(x, ones(x), 1);
       }},
  };
  for (const auto& each : troupe::testing::activations()) {
    all.push_back({each.name, each.forward});
    // NaN in what a backward pass is computed from, be it the input or the result.
    auto backward = [ones, each](const tensor& x) { return each.backward(ones(x), x, x); };
    all.push_back({each.name + "_backward", backward});
  }
  return all;
}

}  // namespace

TEST_CASE("NaN goes through every operation") {
  for (auto type : floating_types) {
    auto x = with_nan({4, 8}, type);
    for (const auto& each : functions()) {
      CAPTURE(each.name, to_string(type));
      CHECK(is_nan_at_0(each.apply(x)));
    }
  }
}

TEST_CASE("a gradient passes a relu where its result is NaN") {
  for (auto type : floating_types) {
    auto dy = placed(cast(tensor::full({4, 8}, 3), type));
    CHECK(values_of(relu_backward(dy, with_nan({4, 8}, type)))[0] == 3);
  }
}

TEST_CASE("NaN in a weight or a bias shows behind a fused relu") {
  for (auto type : floating_types) {
    CAPTURE(to_string(type));
    constexpr auto with_relu = troupe::linear_activation::relu;
    auto x = placed(cast(tensor::full({4, 8}, 1), type)),
         weight = placed(cast(random_tensor({6, 8}, "weight"), type));
    auto bias = placed(cast(random_tensor({6}, "bias"), type));
    CHECK(is_nan_at_0(linear_forward(x, with_nan({6, 8}, type), bias, with_relu)));
    CHECK(is_nan_at_0(linear_forward(x, weight, with_nan({6}, type), with_relu)));
  }
}

TEST_CASE("NaN in an image or a kernel shows behind a fused relu") {
  constexpr troupe::conv2d_options with_relu{.padding = {1, 1}, .relu = true};
  for (auto type : floating_types) {
    CAPTURE(to_string(type));
    auto x = placed(random_tensor({1, 3, 6, 6}, "x", type)),
         weight = placed(random_tensor({4, 3, 3, 3}, "w", type));
    CHECK(is_nan_at_0(conv2d_forward(with_nan({1, 3, 6, 6}, type), weight, {}, with_relu)));
    CHECK(is_nan_at_0(conv2d_forward(x, weight, with_nan({4}, type), with_relu)));
  }
}

TEST_CASE("dropout keeps NaN where it drops an element") {
  const troupe::philox_stream stream(1, troupe::random_purpose::activations, {2, 3, 4});
  for (auto type : floating_types) {
    auto x = placed(cast(tensor::full({4, 64}, quiet_nan), type));
    for (auto value : values_of(dropout(x, 0.5, stream))) CHECK(std::isnan(value));
    auto finite = placed(cast(tensor::full({4, 64}, -1), type));
    for (auto value : values_of(dropout(finite, 0.5, stream))) CHECK((value == -2 || !std::signbit(value)));
  }
}

TEST_CASE("NaN goes through pooling") {
  for (auto type : floating_types) {
    auto x = with_nan({1, 2, 4, 4}, type);
    CHECK(is_nan_at_0(max_pool2d_forward(x).y));
    CHECK(is_nan_at_0(avg_pool2d_forward(x)));
    CHECK(is_nan_at_0(global_avg_pool_forward(x)));
  }
}

TEST_CASE("NaN goes through attention") {
  for (auto type : floating_types) {
    auto qkv = with_nan({1, 40, 3 * 32}, type);
    CHECK(is_nan_at_0(attention_forward(qkv, {.num_heads = 2, .causal = true}).out));
  }
}
