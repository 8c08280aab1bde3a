// What GPUs compute is what the CPU computes, whose results other tests hold to references; and it is the
// same bits every time.
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>
#include <stdexcept>

#include "support/gpu_agreement.hpp"
#include "troupe/ops/adam_step.hpp"
#include "troupe/ops/attention.hpp"
#include "troupe/ops/convert.hpp"
#include "troupe/ops/cross_entropy.hpp"
#include "troupe/ops/dropout.hpp"
#include "troupe/ops/elementwise.hpp"
#include "troupe/ops/embedding.hpp"
#include "troupe/ops/lamb_step.hpp"
#include "troupe/ops/linear.hpp"
#include "troupe/ops/matmul.hpp"
#include "troupe/ops/norm.hpp"
#include "troupe/ops/reduction.hpp"
#include "troupe/ops/rows.hpp"
#include "troupe/ops/sgd_step.hpp"
#include "troupe/ops/softmax.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using troupe::device;
using troupe::dtype;
using troupe::gradient_mode;
using troupe::tensor;
using troupe::testing::first_gpu;
using troupe::testing::floating_types;
using troupe::testing::random_tensor;
using troupe::testing::require_agreement;
using troupe::testing::require_equal_bits;

namespace {

/// Indices in [0, limit), some of them several times.
tensor indices(std::int64_t count, std::int64_t limit) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back((i * i + 3 * i) % limit);
  return tensor::from(values, {count});
}

}  // namespace

TEST_CASE("GPUs: linear and its gradients") {
  for (auto type : floating_types)
    require_agreement([&](device target) {
      auto x = random_tensor({37, 65}, "x", type).to(target),
           w = random_tensor({129, 65}, "w", type).to(target), b = random_tensor({129}, "b", type).to(target),
           dy = random_tensor({37, 129}, "dy", type).to(target);
      auto dw = tensor::full({129, 65}, 1).to(target), db = tensor::full({129}, 1).to(target);
      linear_backward_weight(x, dy, dw, db, gradient_mode::accumulate);
      return std::vector{linear_forward(x, w, b),
                         linear_forward(x, w, {}),
                         linear_forward(x, w, b, troupe::linear_activation::relu),
                         linear_backward_input(dy, w),
                         dw,
                         db};
    });
}

TEST_CASE("GPUs: products of batches of matrices, transposed or not, of one right operand or many") {
  for (auto type : floating_types)
    require_agreement([&](device target) {
      auto a = random_tensor({3, 17, 33}, "a", type).to(target),
           b = random_tensor({3, 33, 9}, "b", type).to(target),
           bt = random_tensor({3, 9, 33}, "bt", type).to(target),
           one = random_tensor({33, 9}, "one", type).to(target),
           at = random_tensor({3, 33, 17}, "at", type).to(target);
      return std::vector{matmul(a, b), matmul(a, bt, {.transpose_b = true}), matmul(a, one),
                         matmul(at, b, {.transpose_a = true}), matmul(at, one, {.transpose_a = true})};
    });
}

TEST_CASE("GPUs: softmax and norms of short and long rows") {
  for (auto type : floating_types)
    for (const auto& extents : {troupe::shape{5, 7}, troupe::shape{3, 768}, troupe::shape{2, 9001}})
      require_agreement([&](device target) {
        auto x = random_tensor(extents, "x", type, 3).to(target),
             dy = random_tensor(extents, "dy", type).to(target);
        auto gamma = random_tensor({extents[-1]}, "gamma").to(target),
             beta = random_tensor({extents[-1]}, "beta", type).to(target);
        auto soft = softmax_forward(x), log_soft = log_softmax_forward(x);
        auto layer = layer_norm_forward(x, gamma, beta, 1e-5);
        auto rms = rms_norm_forward(x, gamma, 1e-5);
        auto dgamma = tensor::full({extents[-1]}, 1).to(target), dbeta = dgamma.clone();
        layer_norm_backward_weight(dy, x, layer.mean, layer.rstd, dgamma, dbeta, gradient_mode::accumulate);
        return std::vector{soft,       softmax_backward(dy, soft),
                           log_soft,   log_softmax_backward(dy, log_soft),
                           layer.y,    layer.mean,
                           layer.rstd, layer_norm_backward_input(dy, x, gamma, layer.mean, layer.rstd),
                           dgamma,     dbeta,
                           rms.y,      rms_norm_backward_input(dy, x, gamma, rms.rstd)};
      });
}

TEST_CASE("GPUs: gradients of norms' weights over many rows") {
  require_agreement([](device target) {
    auto x = random_tensor({9000, 40}, "x").to(target), dy = random_tensor({9000, 40}, "dy").to(target);
    auto layer = layer_norm_forward(x, {}, {}, 1e-5);
    auto dgamma = tensor::empty({40}, dtype::f32, target), dbeta = tensor::empty({40}, dtype::f32, target);
    layer_norm_backward_weight(dy, x, layer.mean, layer.rstd, dgamma, dbeta, gradient_mode::assign);
    return std::vector{dgamma, dbeta};
  });
}

TEST_CASE("GPUs: cross entropy, its counts and its gradient") {
  for (auto type : floating_types)
    for (double smoothing : {0.0, 0.1})
      require_agreement([&](device target) {
        auto logits = random_tensor({300, 77}, "logits", type, 4).to(target),
             labels = indices(300, 77).to(target);
        troupe::cross_entropy_options options{.label_smoothing = smoothing, .ignore_index = 4};
        auto result = cross_entropy_forward(logits, labels, options);
        auto loss = tensor::full({1}, static_cast<float>(result.loss_sum));
        auto counts = tensor::from(std::vector{result.num_correct, result.num_counted}, {2});
        return std::vector{result.log_sum_exp,
                           cross_entropy_backward(logits, labels, result.log_sum_exp, 0.25, options),
                           loss.to(target), counts.to(target)};
      });
}

TEST_CASE("GPUs: a label or an index out of range is refused by its position") {
  auto gpu = first_gpu();
  auto logits = tensor::zeros({3, 5}, dtype::f32, gpu);
  auto bad = tensor::from(std::vector<std::int64_t>{0, 9, -7}, {3}).to(gpu);
  CHECK_THROWS_MATCHES(cross_entropy_forward(logits, bad), std::invalid_argument,
                       MessageMatches(ContainsSubstring("labels in [0, 5), got 9 at sample 1")));
  CHECK_THROWS_MATCHES(embedding_forward(logits, bad), std::invalid_argument,
                       MessageMatches(ContainsSubstring("indices in [0, 3), got 9 at position 1")));
}

TEST_CASE("GPUs: dropout, casts and rows by index have the CPU's bits") {
  for (auto type : floating_types)
    require_equal_bits([&](device target) {
      auto x = random_tensor({1003}, "x", type).to(target),
           table = random_tensor({50, 21}, "table", type).to(target);
      auto dy = random_tensor({90, 21}, "dy", type).to(target), few = indices(20, 50).to(target),
           many = indices(90, 50).to(target);
      auto sum_of_many = tensor::full({50, 21}, 1).to(target), sum_of_few = sum_of_many.clone();
      embedding_backward_weight(many, dy, sum_of_many, gradient_mode::accumulate);
      scatter_add_rows(few, dy.rows(0, 20), sum_of_few, gradient_mode::assign);
      return std::vector{
          dropout(x, 0.3, troupe::philox_stream(7, troupe::random_purpose::activations, {1, 2, 3})),
          cast(x, dtype::f32),
          cast(x, dtype::bf16),
          cast(x, dtype::f16),
          embedding_forward(table, many),
          gather_rows(table, few),
          sum_of_many,
          sum_of_few};
    });
}

TEST_CASE("GPUs: elementwise operations, also where operands repeat or differ in dtype") {
  for (auto type : floating_types)
    require_agreement([&](device target) {
      auto a = random_tensor({4, 5, 33}, "a", type).to(target),
           b = random_tensor({4, 5, 33}, "b", type).to(target), row = random_tensor({33}, "row").to(target),
           column = random_tensor({5, 1}, "column", type).to(target);
      auto changed = a.clone();
      axpy(0.5F, b, changed);
      scale(changed, 3);
      return std::vector{add(a, b),
                         add(a, row),
                         subtract(a, column),
                         multiply(row, column),
                         minimum(a, b),
                         maximum(a, row),
                         less(a, b),
                         greater(a, column),
                         equal(a, a),
                         negate(a),
                         exp(a),
                         sqrt(abs(a)),
                         troupe::where(less(a, b), a, row),
                         changed};
    });
}

TEST_CASE("GPUs: operands of one shape and two dtypes") {
  for (auto type : {dtype::bf16, dtype::f16})
    require_agreement([&](device target) {
      auto a = random_tensor({7, 333}, "a").to(target), b = random_tensor({7, 333}, "b", type).to(target);
      return std::vector{add(a, b), add(b, a), multiply(a, b), subtract(b, a), less(a, b)};
    });
}

TEST_CASE("GPUs: attention, causal or not, and its gradient") {
  for (auto type : floating_types)
    for (auto causal : {true, false})
      for (auto [positions, heads, width] : {std::array{1, 1, 1}, {37, 3, 8}, {130, 2, 33}})
        require_agreement([&](device target) {
          auto qkv = random_tensor({2, positions, 3 * heads * width}, "qkv", type, 2).to(target),
               dout = random_tensor({2, positions, heads * width}, "dout", type).to(target);
          troupe::attention_options options{.num_heads = heads, .causal = causal};
          auto [out, log_sum_exp] = attention_forward(qkv, options);
          return std::vector{out, log_sum_exp, attention_backward(dout, qkv, out, log_sum_exp, options)};
        });
}

TEST_CASE("GPUs: reductions along axes and over everything") {
  for (auto type : floating_types)
    for (const auto& extents :
         {troupe::shape{3, 4, 5}, troupe::shape{1, 700, 33}, troupe::shape{2, 1, 40'001}}) {
      if (extents[2] > 1000 && type != dtype::f32) continue;  // large ones differ in what is added up where
      require_agreement([&](device target) {
        auto x = random_tensor(extents, "x", type).to(target);
        std::vector<tensor> results;
        for (const auto& axes : {std::vector<int>{}, {0}, {1}, {2}, {0, 2}, {1, 2}})
          results.insert(results.end(), {mean(x, {axes}), troupe::max(x, {axes}), troupe::min(x, {axes})});
        for (int axis : {0, 1, 2}) results.push_back(argmax(x, {{axis}}));
        results.push_back(argmax(x));
        return results;
      });
    }
}

TEST_CASE("GPUs: norms of several tensors, clipping, and what is not finite") {
  require_agreement([](device target) {
    std::vector<tensor> gradients;
    for (std::int64_t size : {1, 0, 300'001, 77})
      gradients.push_back(random_tensor({size}, std::to_string(size)).to(target));
    auto norm = clip_by_global_norm(gradients, 1), sum = total_sum(gradients[2]);
    auto scalars = tensor::from(std::vector<float>{static_cast<float>(norm), static_cast<float>(sum)}, {2});
    auto infinite = tensor::full({5}, 3e38F).to(target);
    auto finite =
        tensor::from(std::vector<std::uint8_t>{all_finite(gradients), all_finite(std::span(&infinite, 1)),
                                               scale_all(std::span(&infinite, 1), 3)},
                     {3});
    gradients.push_back(scalars.to(target));
    gradients.push_back(finite.to(target));
    return gradients;
  });
}

TEST_CASE("GPUs: integers wrap around and compare") {
  require_equal_bits([](device target) {
    auto a = tensor::from(std::vector<std::int32_t>{2147483647, -5, 7}, {3}).to(target),
         b = tensor::from(std::vector<std::int32_t>{1, -5, 3}, {3}).to(target);
    return std::vector{add(a, b), subtract(a, b), multiply(a, b), minimum(a, b), less(a, b), equal(a, b)};
  });
}

TEST_CASE("GPUs: casts between all dtypes saturate as the CPU's do") {
  constexpr dtype types[] = {dtype::f32, dtype::bf16, dtype::f16,    dtype::u8,
                             dtype::i32, dtype::i64,  dtype::boolean};
  auto infinite = std::numeric_limits<float>::infinity();
  std::vector<float> values{0,      -0.0F,  0.4F,     -0.6F,     1.5F,
                            255.9F, 256,    -1,       3e9F,      -3e9F,
                            2e19F,  -2e19F, infinite, -infinite, std::numeric_limits<float>::quiet_NaN()};
  for (auto from : types)
    require_equal_bits([&](device target) {
      auto x = cast(tensor::from(values, {15}), from).to(target);
      // Which NaN comes out is the machine's choice.
      if (is_floating(from)) x = x.rows(0, 14);
      std::vector<tensor> results;
      for (auto to : types) results.push_back(cast(x, to));
      return results;
    });
  auto gpu = first_gpu();
  auto nan = tensor::from(std::vector{std::numeric_limits<float>::quiet_NaN()}, {1}).to(gpu);
  CHECK(cast(nan, dtype::i32).to({}).values<std::int32_t>()[0] == 0);
  CHECK(cast(nan, dtype::boolean).to({}).values<bool>()[0]);
}

TEST_CASE("GPUs: optimizer steps over more weights than one kernel takes") {
  require_agreement([](device target) {
    std::vector<troupe::adam_slot> adam, lamb;
    std::vector<troupe::sgd_slot> sgd;
    for (std::int64_t i = 0; i < 130; ++i) {
      auto name = std::to_string(i);
      auto size = i % 40 == 0 ? 10'000 + i : i;
      auto make = [&](const char* what) { return random_tensor({size}, what + name).to(target); };
      auto zeros = [&](dtype type) { return tensor::zeros({size}, type, target); };
      adam.push_back({make("w"), make("g"), zeros(dtype::f32), zeros(dtype::f32), zeros(dtype::bf16)});
      lamb.push_back({make("w"), make("g"), zeros(dtype::f32), zeros(dtype::f32), zeros(dtype::f16)});
      sgd.push_back({make("w"), make("g"), zeros(dtype::f32), zeros(dtype::f16)});
    }
    troupe::adam_step(adam, 3, {.weight_decay = 0.1, .decoupled = true});
    troupe::lamb_step(lamb, 3, {.weight_decay = 0.1});
    troupe::sgd_step(sgd, {.momentum = 0.9, .nesterov = true});
    std::vector<tensor> written;
    adam.insert(adam.end(), lamb.begin(), lamb.end());
    for (const auto& each : adam)
      written.insert(written.end(), {each.weight, each.exp_avg, each.exp_avg_sq, each.low_precision});
    for (const auto& each : sgd)
      written.insert(written.end(), {each.weight, each.momentum_buffer, each.low_precision});
    return written;
  });
}
