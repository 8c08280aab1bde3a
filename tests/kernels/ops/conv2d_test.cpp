#include "troupe/ops/conv2d.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <stdexcept>

#include "support/bits.hpp"
#include "support/devices.hpp"
#include "support/random_tensor.hpp"
#include "support/reference.hpp"
#include "support/rounded.hpp"
#include "troupe/ops/activation.hpp"
#include "troupe/ops/threads.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace troupe;
using namespace troupe::testing;

namespace {

struct extents_and_options {
  shape x, weight;
  conv2d_options options;
};

const std::vector<extents_and_options> convolutions{
    {{2, 1, 7, 5}, {3, 1, 3, 3}, {.padding{1, 1}}},
    {{3, 5, 9, 8}, {7, 5, 3, 2}, {.stride{2, 1}, .padding{1, 0}}},
    {{1, 17, 6, 6}, {33, 17, 1, 1}, {}},
    {{2, 6, 11, 7}, {4, 3, 3, 3}, {.stride{2, 3}, .padding{2, 1}, .dilation{2, 1}, .groups = 2}},
    {{2, 16, 8, 8}, {16, 1, 3, 3}, {.padding{1, 1}, .groups = 16}},
    {{4, 32, 5, 5}, {16, 32, 5, 5}, {}},
    {{1, 2, 1, 4}, {1, 2, 3, 3}, {.padding{1, 3}, .dilation{1, 2}}},
};

/// Calls `term(x, weight, y)` with the indices of the elements of every product that y is a sum of.
template <class Term>
void for_each_term(const extents_and_options& problem, const shape& y, const Term& term) {
  const auto& [x, weight, options] = problem;
  auto [stride, padding, dilation, groups, relu] = options;
  for (std::int64_t n = 0; n < y[0]; ++n)
    for (std::int64_t o = 0; o < y[1]; ++o)
      for (std::int64_t i = 0; i < y[2]; ++i)
        for (std::int64_t j = 0; j < y[3]; ++j)
          for (std::int64_t c = 0; c < weight[1]; ++c)
            for (std::int64_t k = 0; k < weight[2]; ++k)
              for (std::int64_t l = 0; l < weight[3]; ++l) {
                auto row = i * stride.h - padding.h + k * dilation.h;
                auto column = j * stride.w - padding.w + l * dilation.w;
                if (row < 0 || row >= x[2] || column < 0 || column >= x[3]) continue;
                auto channel = o / (y[1] / groups) * weight[1] + c;
                term(((n * x[1] + channel) * x[2] + row) * x[3] + column,
                     ((o * weight[1] + c) * weight[2] + k) * weight[3] + l,
                     ((n * y[1] + o) * y[2] + i) * y[3] + j);
              }
}

struct convolution_operands {
  extents_and_options of;
  tensor x, weight, bias, dy;

  convolution_operands(const extents_and_options& problem, dtype type)
      : of(problem),
        x(placed(rounded(random_tensor(of.x, "x"), type))),
        weight(placed(rounded(random_tensor(of.weight, "weight"), type))),
        bias(placed(rounded(random_tensor({of.weight[0]}, "bias"), type))) {
    dy = placed(rounded(random_tensor(conv2d_forward(x, weight, {}, of.options).shape(), "dy"), type));
  }
  tensor forward(const tensor& with_bias) const { return conv2d_forward(x, weight, with_bias, of.options); }
};

std::vector<exact_sum> sums(std::int64_t size) {
  return std::vector<exact_sum>(static_cast<std::size_t>(size));
}

std::vector<exact_sum> expected_y(const convolution_operands& p, const std::vector<double>& x,
                                  const std::vector<double>& weight, bool with_bias) {
  auto y = sums(p.dy.num_elements());
  auto bias = values_of(p.bias);
  auto plane = static_cast<std::size_t>(p.dy.shape()[2] * p.dy.shape()[3]);
  if (with_bias)
    for (std::size_t i = 0; i < y.size(); ++i) y[i].add(bias[i / plane % bias.size()]);
  for_each_term(p.of, p.dy.shape(), [&](auto at_x, auto at_w, auto at_y) {
    y[static_cast<std::size_t>(at_y)].add(x[static_cast<std::size_t>(at_x)] *
                                          weight[static_cast<std::size_t>(at_w)]);
  });
  return y;
}

struct expected_gradients {
  std::vector<exact_sum> x, weight, bias;
};

expected_gradients expected_gradients_of(const convolution_operands& p) {
  expected_gradients result{sums(p.x.num_elements()), sums(p.weight.num_elements()),
                            sums(p.bias.num_elements())};
  auto x = values_of(p.x), weight = values_of(p.weight), dy = values_of(p.dy);
  for_each_term(p.of, p.dy.shape(), [&](auto at_x, auto at_w, auto at_y) {
    auto i = static_cast<std::size_t>(at_x), j = static_cast<std::size_t>(at_w),
         k = static_cast<std::size_t>(at_y);
    result.x[i].add(dy[k] * weight[j]);
    result.weight[j].add(dy[k] * x[i]);
  });
  auto plane = static_cast<std::size_t>(p.dy.shape()[2] * p.dy.shape()[3]);
  for (std::size_t i = 0; i < dy.size(); ++i) result.bias[i / plane % result.bias.size()].add(dy[i]);
  return result;
}

void add_to(std::vector<exact_sum>& sums, const tensor& terms) {
  auto values = values_of(terms);
  for (std::size_t i = 0; i < values.size(); ++i) sums[i].add(values[i]);
}

/// The sum of dy * y, whose gradients are those of the operation.
double objective(const convolution_operands& p, const std::vector<double>& x,
                 const std::vector<double>& weight) {
  double sum = 0;
  auto y = expected_y(p, x, weight, false);
  auto dy = values_of(p.dy);
  for (std::size_t i = 0; i < y.size(); ++i) sum += dy[i] * y[i].value;
  return sum;
}

}  // namespace

TEST_CASE("a convolution is the sum over its windows, with and without bias", "[by_library]") {
  for (auto type : {dtype::f32, dtype::bf16, dtype::f16})
    for (const auto& problem : convolutions) {
      convolution_operands p(problem, type);
      auto x = values_of(p.x), weight = values_of(p.weight);
      require_close(p.forward({}), expected_y(p, x, weight, false));
      require_close(p.forward(p.bias), expected_y(p, x, weight, true));
    }
}

TEST_CASE("a fused convolution and relu has the bits of the two in turn", "[by_library]") {
  for (auto type : {dtype::f32, dtype::bf16, dtype::f16})
    for (auto problem : convolutions) {
      convolution_operands p(problem, type);
      auto expected = relu_forward(p.forward(p.bias));
      p.of.options.relu = true;
      CHECK(values_of(p.forward(p.bias)) == values_of(expected));  // zeros may differ in sign
      auto dy = relu_backward(p.dy, expected);
      CHECK(same_bits(conv2d_backward_input(dy, p.weight, problem.x, p.of.options),
                      conv2d_backward_input(dy, p.weight, problem.x, problem.options)));
    }
}

TEST_CASE("a convolution's input gradient is the sum over the windows that contain a pixel", "[by_library]") {
  for (auto type : {dtype::f32, dtype::bf16, dtype::f16})
    for (const auto& problem : convolutions) {
      convolution_operands p(problem, type);
      require_close(conv2d_backward_input(p.dy, p.weight, problem.x, problem.options),
                    expected_gradients_of(p).x);
    }
}

TEST_CASE("a convolution's weight gradients are assigned or added, in f32 or the dtype of x",
          "[by_library]") {
  for (auto type : {dtype::f32, dtype::bf16, dtype::f16})
    for (auto gradient_type : {dtype::f32, type})
      for (const auto& problem : convolutions) {
        convolution_operands p(problem, type);
        auto expected = expected_gradients_of(p);
        auto before = placed(rounded(random_tensor(problem.weight, "dw"), gradient_type));
        auto bias_before = placed(rounded(random_tensor({problem.weight[0]}, "db"), gradient_type));
        auto dw = before.clone(), db = bias_before.clone();
        conv2d_backward_weight(p.x, p.dy, dw, db, problem.options, gradient_mode::assign);
        require_close(dw, expected.weight);
        require_close(db, expected.bias);
        conv2d_backward_weight(p.x, p.dy, dw, {}, problem.options, gradient_mode::assign);
        require_close(dw, expected.weight);
        auto db_alone = bias_before.clone();
        conv2d_backward_weight(p.x, p.dy, {}, db_alone, problem.options, gradient_mode::assign);
        CHECK(same_bits(db_alone, db));

        dw = before.clone(), db = bias_before.clone();
        conv2d_backward_weight(p.x, p.dy, dw, db, problem.options, gradient_mode::accumulate);
        add_to(expected.weight, before);
        add_to(expected.bias, bias_before);
        require_close(dw, expected.weight);
        require_close(db, expected.bias);
      }
}

TEST_CASE("the reference gradients of a convolution are those of finite differences", "[host]") {
  for (const auto& problem : convolutions) {
    convolution_operands p(problem, dtype::f32);
    auto expected = expected_gradients_of(p);
    auto difference = [&](bool of_x, std::size_t at) {
      constexpr double step = 1e-3;
      auto x = values_of(p.x), weight = values_of(p.weight);
      auto& value = of_x ? x[at] : weight[at];
      value += step;
      auto above = objective(p, x, weight);
      value -= 2 * step;
      return (above - objective(p, x, weight)) / (2 * step);
    };
    for (std::size_t at : {std::size_t{0}, expected.x.size() / 2, expected.x.size() - 1})
      CHECK(std::abs(difference(true, at) - expected.x[at].value) < 1e-6);
    for (std::size_t at : {std::size_t{0}, expected.weight.size() / 2, expected.weight.size() - 1})
      CHECK(std::abs(difference(false, at) - expected.weight[at].value) < 1e-6);
  }
}

TEST_CASE("a convolution gives the same bits every time, and forward on any number of threads",
          "[by_library]") {
  for (const auto& problem : convolutions) {
    convolution_operands p(problem, dtype::f32);
    set_num_threads(1);
    auto y = p.forward(p.bias), dx = conv2d_backward_input(p.dy, p.weight, problem.x, problem.options);
    CHECK(same_bits(p.forward(p.bias), y));
    set_num_threads(3);
    CHECK(same_bits(p.forward(p.bias), y));
    CHECK(same_bits(conv2d_backward_input(p.dy, p.weight, problem.x, problem.options), dx));
    auto dw = placed(tensor::empty(problem.weight)), dw_again = placed(tensor::empty(problem.weight));
    conv2d_backward_weight(p.x, p.dy, dw, {}, problem.options, gradient_mode::assign);
    conv2d_backward_weight(p.x, p.dy, dw_again, {}, problem.options, gradient_mode::assign);
    CHECK(same_bits(dw, dw_again));
    set_num_threads(1);
  }
}

TEST_CASE("a convolution of no images gives no images, and a gradient of zero", "[by_library]") {
  auto weight = placed(tensor::full({3, 2, 1, 1}, 5)), bias = placed(tensor::full({3}, 5));
  auto none = placed(tensor::empty({0, 2, 4, 4})), dy = placed(tensor::empty({0, 3, 4, 4}));
  CHECK(conv2d_forward(none, weight, bias).shape() == shape{0, 3, 4, 4});
  CHECK(conv2d_backward_input(dy, weight, {0, 2, 4, 4}).shape() == shape{0, 2, 4, 4});
  conv2d_backward_weight(none, dy, weight, bias, {}, gradient_mode::accumulate);
  CHECK(same_bits(weight, tensor::full({3, 2, 1, 1}, 5)));
  conv2d_backward_weight(none, dy, weight, bias, {}, gradient_mode::assign);
  CHECK(same_bits(weight, tensor::zeros({3, 2, 1, 1})));
  CHECK(same_bits(bias, tensor::zeros({3})));
}

TEST_CASE("a convolution names the argument that does not fit", "[host]") {
  auto x = tensor::zeros({2, 4, 6, 6}), weight = tensor::zeros({8, 4, 3, 3}),
       dy = tensor::zeros({2, 8, 4, 4});
  CHECK_THROWS_WITH(conv2d_forward(tensor::zeros({2}, dtype::u8), weight, {}),
                    ContainsSubstring("[conv2d] expected x of f32, bf16 or f16, got u8[2]"));
  CHECK_THROWS_WITH(conv2d_forward(tensor::zeros({4, 6, 6}), weight, {}),
                    ContainsSubstring("x [N, C, H, W]"));
  CHECK_THROWS_WITH(conv2d_forward(x, tensor::zeros({8, 3, 3, 3}), {}),
                    ContainsSubstring("got [8, 3, 3, 3] for x [2, 4, 6, 6]"));
  CHECK_THROWS_WITH(conv2d_forward(x, tensor::zeros({8, 4, 3, 3}, dtype::bf16), {}),
                    ContainsSubstring("weight f32[8, 4, 3, 3]"));
  CHECK_THROWS_WITH(conv2d_forward(x, {}, {}), ContainsSubstring("undefined"));
  CHECK_THROWS_WITH(conv2d_forward(x, weight, tensor::zeros({4})), ContainsSubstring("bias f32[8]"));
  CHECK_THROWS_WITH(conv2d_forward(x, weight, {}, {.groups = 3}), ContainsSubstring("multiple of 3"));
  CHECK_THROWS_WITH(conv2d_forward(x, weight, {}, {.groups = 0}), ContainsSubstring("groups >= 1"));
  CHECK_THROWS_WITH(conv2d_forward(x, weight, {}, {.stride{0, 1}}),
                    ContainsSubstring("stride from 1 to 2^31, got 0 x 1"));
  CHECK_THROWS_WITH(conv2d_forward(x, weight, {}, {.padding{0, -1}}), ContainsSubstring("padding from 0"));
  CHECK_THROWS_WITH(conv2d_forward(x, weight, {}, {.dilation{std::int64_t{1} << 40, 1}}),
                    ContainsSubstring("dilation from 1"));
  CHECK_THROWS_WITH(conv2d_forward(x, weight, {}, {.dilation{3, 1}}),
                    ContainsSubstring("6 x 6 padded by 0 x 0 for a kernel of 3 x 3 with dilation 3 x 1"));
  CHECK_THROWS_WITH(conv2d_backward_input(tensor::zeros({2, 8, 5, 4}), weight, x.shape()),
                    ContainsSubstring("dy f32[2, 8, 4, 4]"));
  CHECK_THROWS_WITH(
      conv2d_backward_weight(x, tensor::zeros({2, 8, 5, 4}), weight, {}, {}, gradient_mode::assign),
      ContainsSubstring("dy f32[2, 8, 4, 4]"));
  CHECK_THROWS_WITH(
      conv2d_backward_weight(x, dy, tensor::zeros({8, 4, 3, 3}, dtype::bf16), {}, {}, gradient_mode::assign),
      ContainsSubstring("weight_gradient"));
  CHECK_THROWS_WITH(conv2d_backward_weight(x, {}, {}, tensor::zeros({8}), {}, gradient_mode::assign),
                    ContainsSubstring("dy f32[N, O, OH, OW] on cpu:0, got undefined"));
  CHECK_THROWS_WITH(
      conv2d_backward_weight(x, tensor::zeros({8}), {}, tensor::zeros({8}), {}, gradient_mode::assign),
      ContainsSubstring("dy f32[N, O, OH, OW] on cpu:0, got f32[8]"));
  CHECK_THROWS_WITH(conv2d_backward_weight(x, dy, {}, tensor::zeros({4}), {}, gradient_mode::assign),
                    ContainsSubstring("bias_gradient f32 or f32[8], got f32[4]"));
  CHECK_THROWS_WITH(conv2d_forward(x, weight, {}, {.groups = std::int64_t{1} << 62}),
                    ContainsSubstring("multiple of 4611686018427387904"));
  CHECK_THROWS_WITH(
      conv2d_backward_weight(x, dy, weight, tensor::zeros({8}, dtype::bf16), {}, gradient_mode::assign),
      ContainsSubstring("bias_gradient f32"));
}
