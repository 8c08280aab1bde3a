// What GPUs make of images, and of elements that only change places, against the CPU.
#include <catch2/catch_test_macros.hpp>
#include <limits>

#include "support/gpu_agreement.hpp"
#include "troupe/ops/batch_norm.hpp"
#include "troupe/ops/conv2d.hpp"
#include "troupe/ops/convert.hpp"
#include "troupe/ops/pooling.hpp"
#include "troupe/ops/rearrange.hpp"
#include "troupe/ops/top_k.hpp"

using troupe::device;
using troupe::dtype;
using troupe::gradient_mode;
using troupe::tensor;
using troupe::testing::floating_types;
using troupe::testing::random_tensor;
using troupe::testing::require_agreement;
using troupe::testing::require_equal_bits;

namespace {

constexpr auto infinite = std::numeric_limits<float>::infinity();

const troupe::conv2d_options convolutions[] = {
    {},
    {.padding = {1, 1}, .relu = true},
    {.stride = {2, 3}, .padding = {2, 0}, .groups = 2},
    {.padding = {2, 2}, .dilation = {2, 2}},
};

const troupe::pool2d_options windows[] = {
    {},
    {.kernel = {3, 2}, .stride = {1, 2}, .padding = {1, 1}},
    {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .count_include_pad = false},
    {.kernel = {2, 1}, .stride = {3, 3}},
    {.kernel = {17, 16}, .stride = {1, 1}, .padding = {8, 8}},
};

/// Extents, and the place of the first element in a larger tensor: from 1 on none is aligned.
struct batch {
  troupe::shape extents;
  std::int64_t first = 0;
};
const batch batches[] = {{{4, 5, 7, 3}},   {{300, 33}},         {{9, 2, 1100}},
                         {{45, 2, 8, 24}}, {{45, 2, 8, 24}, 1}, {{70, 3, 1, 8}, 3}};

}  // namespace

TEST_CASE("GPUs: convolutions and their gradients") {
  for (auto type : floating_types)
    for (const auto& options : convolutions)
      require_agreement([&](device target) {
        auto per_group = 4 / options.groups;
        auto x = random_tensor({3, 4, 11, 9}, "x", type).to(target),
             weight = random_tensor({6, per_group, 3, 3}, "w", type).to(target),
             bias = random_tensor({6}, "b", type).to(target);
        auto y = conv2d_forward(x, weight, bias, options);
        auto dy = random_tensor(y.shape(), "dy", type).to(target);
        auto dweight = tensor::full(weight.shape(), 1).to(target), dbias = tensor::full({6}, 1).to(target);
        conv2d_backward_weight(x, dy, dweight, dbias, options, gradient_mode::accumulate);
        auto assigned = tensor::empty(weight.shape(), type, target);
        conv2d_backward_weight(x, dy, assigned, {}, options, gradient_mode::assign);
        return std::vector{y,
                           conv2d_forward(x, weight, {}, options),
                           conv2d_backward_input(dy, weight, x.shape(), options),
                           dweight,
                           dbias,
                           assigned};
      });
}

TEST_CASE("GPUs: pooling and its gradients have the CPU's bits") {
  for (auto type : floating_types)
    for (const auto& options : windows)
      require_equal_bits([&](device target) {
        auto x = random_tensor({2, 3, 17, 19}, "x", type).to(target);
        auto largest = max_pool2d_forward(x, options);
        auto dy = random_tensor(largest.y.shape(), "dy", dtype::f32);
        for (auto& value : dy.values<float>()) value = value < 0 ? -0.5F : 0.25F;  // sums of these are exact
        auto gradient = cast(dy, type).to(target);
        return std::vector{largest.y, largest.indices,
                           max_pool2d_backward(gradient, largest.indices, x.shape(), options)};
      });
}

TEST_CASE("GPUs: averages of windows and of whole planes, and their gradients") {
  for (auto type : floating_types)
    for (const auto& options : windows)
      require_agreement([&](device target) {
        auto x = random_tensor({2, 3, 17, 19}, "x", type).to(target);
        auto y = avg_pool2d_forward(x, options);
        auto dy = random_tensor(y.shape(), "dy", type).to(target);
        auto means = global_avg_pool_forward(x);
        return std::vector{y, avg_pool2d_backward(dy, x.shape(), options), means,
                           global_avg_pool_backward(means, x.shape())};
      });
}

TEST_CASE("GPUs: the first of equal elements and NaN win a window") {
  require_equal_bits([](device target) {
    auto nan = std::numeric_limits<float>::quiet_NaN();
    auto x = tensor::from(
        std::vector<float>{1, 1, -infinite, -infinite, 1, 1, -infinite, -infinite, 5, nan, 7, 7, 6, 5, 2, 7},
        {1, 1, 4, 4});
    return std::vector{max_pool2d_forward(x.to(target)).indices};
  });
}

TEST_CASE("GPUs: batch normalisation, its running statistics and its gradients") {
  for (auto type : floating_types)
    for (const auto& [extents, first] : batches)
      require_agreement([&](device target) {
        auto channels = extents[1];
        auto size = extents.num_elements();
        auto x = random_tensor({first + size}, "x", type, 3).to(target).rows(first, size).reshape(extents),
             dy = random_tensor(extents, "dy", type).to(target);
        auto weight = random_tensor({channels}, "w").to(target),
             bias = random_tensor({channels}, "b", type).to(target);
        auto mean = tensor::zeros({channels}, dtype::f32, target),
             variance = tensor::full({channels}, 1).to(target);
        auto made = batch_norm_forward(x, weight, bias, mean, variance);
        auto dweight = tensor::full({channels}, 1).to(target),
             dbias = tensor::empty({channels}, type, target);
        batch_norm_backward_weight(x, dy, made.mean, made.rstd, dweight, {}, gradient_mode::accumulate);
        batch_norm_backward_weight(x, dy, made.mean, made.rstd, {}, dbias, gradient_mode::assign);
        return std::vector{made.y,
                           made.mean,
                           made.rstd,
                           mean,
                           variance,
                           batch_norm_forward(x, {}, {}, {}, {}).y,
                           batch_norm_inference(x, weight, bias, mean, variance),
                           batch_norm_backward_input(dy, x, weight, made.mean, made.rstd),
                           dweight,
                           dbias};
      });
}

TEST_CASE("GPUs: elements are rearranged, in every width of element") {
  for (auto type : {dtype::f32, dtype::bf16, dtype::u8, dtype::i64})
    require_equal_bits([&](device target) {
      auto x = cast(random_tensor({3, 34, 5, 7}, "x", dtype::f32, 9), type).to(target),
           matrices = x.reshape({3, 34, 35}), pixels = x.reshape({102, 35});
      std::vector<tensor> results{transpose(matrices), transpose(pixels), transpose(x, {3, 1, 0, 2}),
                                  transpose(x, {0, 2, 3, 1}), transpose(x, {1, 0, 2, 3})};
      for (int axis : {0, 1, 3}) {
        auto middle = slice(x, axis, 1, 2);
        results.push_back(middle);
        results.push_back(slice_backward(middle, x.shape(), axis, 1));
        results.push_back(concat(std::vector{x, middle}, axis));
      }
      return results;
    });
}

TEST_CASE("GPUs: the k largest of rows") {
  for (auto type : floating_types)
    require_equal_bits([&](device target) {
      auto x = random_tensor({5, 1003}, "x", type).to(target);
      auto ties = cast(random_tensor({4, 70}, "ties", dtype::f32, 3), dtype::i32);
      auto some = top_k(x, 7), all = top_k(cast(ties, type).to(target), 70), none = top_k(x, 0);
      auto many = top_k(random_tensor({2, 20000}, "long", type).to(target), 300);
      auto bands = tensor::zeros({1, 20000});  // the largest lie with few of a GPU's threads
      for (std::size_t i = 0; auto& value : bands.values<float>()) value = i++ % 4096 < 16 ? 1.0F : 0.0F;
      auto crowded = top_k(cast(bands, type).to(target), 100);
      return std::vector{some.values, some.indices, all.values,     all.indices,    none.values,
                         many.values, many.indices, crowded.values, crowded.indices};
    });
  require_equal_bits([](device target) {
    auto nan = std::numeric_limits<float>::quiet_NaN();
    auto x = tensor::from(std::vector<float>{-0.0F, nan, infinite, 0, -infinite, nan}, {6}).to(target);
    return std::vector{top_k(x, 6).indices};
  });
}
