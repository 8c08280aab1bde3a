#include "troupe/ops/attention.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <tuple>

#include "support/conversions.hpp"
#include "support/devices.hpp"
#include "support/threads.hpp"
#include "troupe/ops/matmul_precision.hpp"

using Catch::Matchers::ContainsSubstring;
using troupe::attention_options;
using troupe::dtype;
using troupe::tensor;
using troupe::testing::exact_sum;
using troupe::testing::floating_types;
using troupe::testing::placed;
using troupe::testing::random_tensor;
using troupe::testing::require_close;
using troupe::testing::require_same_bits_on_threads;
using troupe::testing::same_bits;
using troupe::testing::values_of;

namespace {

/// Attention in f64 with whole matrices of probabilities.
struct attention_reference {
  std::int64_t sequences, positions, heads, width;
  bool causal;
  double scale;
  std::vector<double> qkv;
  std::vector<exact_sum> out, log_sum_exp;

  std::size_t at(std::int64_t b, std::int64_t t, std::int64_t part, std::int64_t h, std::int64_t d) const {
    return static_cast<std::size_t>((((b * positions + t) * 3 + part) * heads + h) * width + d);
  }
  std::size_t out_at(std::int64_t b, std::int64_t t, std::int64_t h, std::int64_t d) const {
    return static_cast<std::size_t>(((b * positions + t) * heads + h) * width + d);
  }
  double dot(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t s) const {
    double sum = 0;
    for (std::int64_t d = 0; d < width; ++d) sum += qkv[at(b, t, 0, h, d)] * qkv[at(b, s, 1, h, d)];
    return sum;
  }
  std::int64_t seen(std::int64_t t) const { return causal ? t + 1 : positions; }

  template <class Visit>
  void for_each_query(const Visit& visit) const {
    for (std::int64_t b = 0; b < sequences; ++b)
      for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t t = 0; t < positions; ++t) visit(b, h, t);
  }

  void forward() {
    out.assign(qkv.size() / 3, {});
    log_sum_exp.clear();
    for_each_query([&](auto b, auto h, auto t) {
      double sum = 0;
      for (std::int64_t s = 0; s < seen(t); ++s) sum += std::exp(scale * dot(b, h, t, s));
      log_sum_exp.push_back({std::log(sum), 1 + std::abs(std::log(sum))});
      for (std::int64_t s = 0; s < seen(t); ++s) {
        auto p = std::exp(scale * dot(b, h, t, s)) / sum;
        for (std::int64_t d = 0; d < width; ++d) out[out_at(b, t, h, d)].add(p * qkv[at(b, s, 2, h, d)]);
      }
    });
  }

  std::vector<exact_sum> backward(const std::vector<double>& dout) const {
    std::vector<exact_sum> dqkv(qkv.size());
    std::size_t query = 0;
    for_each_query([&](auto b, auto h, auto t) {
      auto lse = log_sum_exp[query++].value;
      exact_sum delta;
      for (std::int64_t d = 0; d < width; ++d)
        delta.add(dout[out_at(b, t, h, d)] * out[out_at(b, t, h, d)].value);
      for (std::int64_t s = 0; s < seen(t); ++s) {
        auto p = std::exp(scale * dot(b, h, t, s) - lse);
        exact_sum dp;
        for (std::int64_t d = 0; d < width; ++d) {
          dp.add(dout[out_at(b, t, h, d)] * qkv[at(b, s, 2, h, d)]);
          dqkv[at(b, s, 2, h, d)].add(p * dout[out_at(b, t, h, d)]);
        }
        auto ds = scale * p * (dp.value - delta.value), size = scale * p * (dp.absolute + delta.absolute);
        auto add = [&](std::size_t to, std::size_t from) {
          dqkv[to].value += ds * qkv[from];
          dqkv[to].absolute += size * std::abs(qkv[from]);
        };
        for (std::int64_t d = 0; d < width; ++d) {
          add(at(b, t, 0, h, d), at(b, s, 1, h, d));
          add(at(b, s, 1, h, d), at(b, t, 0, h, d));
        }
      }
    });
    return dqkv;
  }
};

struct attention_problem {
  std::int64_t sequences, positions, heads, width;
  bool causal;
  float scale = 0;
  dtype type = dtype::f32;
  tensor qkv = placed(random_tensor({sequences, positions, 3 * heads* width}, "qkv", type, 1.5));
  tensor dout = placed(random_tensor({sequences, positions, heads* width}, "dout", type));

  attention_options options() const { return {static_cast<int>(heads), causal, scale}; }
  attention_reference exact() const {
    auto factor = scale == 0 ? 1 / std::sqrt(static_cast<double>(width)) : scale;
    attention_reference result{sequences, positions, heads, width, causal, factor, values_of(qkv), {}, {}};
    result.forward();
    return result;
  }
};

/// On the edges of blocks and across them, in positions and in width.
template <class Check>
void for_each_problem(const Check& check) {
  for (auto [sequences, positions, heads, width] : {std::tuple{1, 1, 1, 1},
                                                    {2, 5, 3, 7},
                                                    {2, 1, 2, 64},
                                                    {2, 63, 1, 128},
                                                    {1, 64, 2, 16},
                                                    {1, 65, 2, 64},
                                                    {1, 130, 1, 33},
                                                    {1, 131, 1, 128},
                                                    {2, 200, 1, 64},
                                                    {1, 70, 1, 200},
                                                    {1, 257, 1, 8}})
    for (auto causal : {true, false}) {
      for (auto type : floating_types)
        check(attention_problem{sequences, positions, heads, width, causal, 0, type});
      check(attention_problem{sequences, positions, heads, width, causal,
                              1.5F / std::sqrt(static_cast<float>(width))});
    }
}

/// Probabilities are as exact as the scores in their exponents.
double tolerance(dtype type) { return type == dtype::f32 ? 1e-5 : troupe::testing::tolerance_of(type); }

}  // namespace

TEST_CASE("attention is the softmax of the scaled scores times the values") {
  for_each_problem([](const attention_problem& p) {
    CAPTURE(p.positions, p.heads, p.width, p.causal, p.scale);
    auto [out, log_sum_exp] = troupe::attention_forward(p.qkv, p.options());
    auto expected = p.exact();
    CHECK(out.shape() == troupe::shape{p.sequences, p.positions, p.heads * p.width});
    CHECK(log_sum_exp.shape() == troupe::shape{p.sequences, p.heads, p.positions});
    require_close(out, expected.out, tolerance(p.type));
    require_close(log_sum_exp, expected.log_sum_exp, tolerance(dtype::f32));
  });
}

TEST_CASE("attention's gradient is that of the exact softmax") {
  for_each_problem([](const attention_problem& p) {
    CAPTURE(p.positions, p.heads, p.width, p.causal, p.scale);
    auto [out, log_sum_exp] = troupe::attention_forward(p.qkv, p.options());
    auto dqkv = troupe::attention_backward(p.dout, p.qkv, out, log_sum_exp, p.options());
    CHECK(dqkv.shape() == p.qkv.shape());
    require_close(dqkv, p.exact().backward(values_of(p.dout)), tolerance(p.type));
  });
}

TEST_CASE("the exact gradient of attention agrees with finite differences", "[host]") {
  for (auto causal : {true, false}) {
    attention_problem p{2, 4, 2, 3, causal};
    auto base = p.exact();
    auto dout = values_of(p.dout);
    auto gradient = base.backward(dout);
    auto loss_at = [&](std::size_t element, double step) {
      auto moved = base;
      moved.qkv[element] += step;
      moved.forward();
      double loss = 0;
      for (std::size_t i = 0; i < dout.size(); ++i) loss += dout[i] * moved.out[i].value;
      return loss;
    };
    for (std::size_t element = 0; element < gradient.size(); ++element) {
      auto slope = (loss_at(element, 1e-5) - loss_at(element, -1e-5)) / 2e-5;
      REQUIRE(std::abs(slope - gradient[element].value) < 1e-8);
    }
  }
}

TEST_CASE("scores of any size neither overflow nor vanish") {
  attention_problem p{1, 150, 1, 16, true, 0, dtype::f32};
  p.qkv = placed(random_tensor({1, 150, 48}, "qkv", dtype::f32, 30));
  auto [out, log_sum_exp] = troupe::attention_forward(p.qkv, p.options());
  for (auto value : values_of(out)) REQUIRE(std::abs(value) <= 30.001);
  for (auto value : values_of(troupe::attention_backward(p.dout, p.qkv, out, log_sum_exp, p.options())))
    REQUIRE(std::isfinite(value));
}

TEST_CASE("TF32 rounds the operands of attention's f32 products on a GPU, and nothing on the CPU") {
  for (auto [positions, width] : {std::pair{5, 7}, {130, 32}, {150, 33}, {200, 64}, {70, 65}})
    for (auto causal : {true, false}) {
      CAPTURE(positions, width, causal);
      attention_problem p{2, positions, 2, width, causal};
      auto compute = [&p] {
        auto [out, log_sum_exp] = troupe::attention_forward(p.qkv, p.options());
        return std::vector{out, log_sum_exp,
                           troupe::attention_backward(p.dout, p.qkv, out, log_sum_exp, p.options())};
      };
      auto in_f32 = compute();
      troupe::set_matmul_precision(troupe::matmul_precision::tf32);
      auto rounded = compute(), again = compute();
      troupe::set_matmul_precision(troupe::matmul_precision::f32);
      auto is_rounded = p.qkv.device().type != troupe::device::kind::cpu && width <= 64;
      auto expected = p.exact();
      // As exact as bf16 with three more bits.
      auto tolerance = troupe::testing::tolerance_of(dtype::bf16) / 4;
      require_close(rounded[0], expected.out, tolerance);
      require_close(rounded[1], expected.log_sum_exp, tolerance);
      require_close(rounded[2], expected.backward(values_of(p.dout)), tolerance);
      for (std::size_t i = 0; i < 3; ++i) {
        CHECK(same_bits(rounded[i], again[i]));
        CHECK(same_bits(rounded[i], in_f32[i]) != is_rounded);
      }
    }
}

TEST_CASE("causal attention does not look ahead") {
  attention_problem p{1, 140, 2, 8, true};
  auto changed = p.qkv.clone();
  changed.reshape({140, 48}).rows(100, 40).copy_from(placed(random_tensor({40, 48}, "other")));
  auto out = troupe::attention_forward(p.qkv, p.options()).out.reshape({140, 16});
  auto out_changed = troupe::attention_forward(changed, p.options()).out.reshape({140, 16});
  CHECK(same_bits(out.rows(0, 100), out_changed.rows(0, 100)));
  CHECK_FALSE(same_bits(out.rows(100, 40), out_changed.rows(100, 40)));
}

TEST_CASE("the number of threads changes no bit of attention") {
  for (auto heads : {1, 3})
    for (auto type : floating_types)
      require_same_bits_on_threads([&] {
        attention_problem p{1, 150, heads, 64, true, 0, type};
        auto [out, log_sum_exp] = troupe::attention_forward(p.qkv, p.options());
        return std::vector{out, log_sum_exp,
                           troupe::attention_backward(p.dout, p.qkv, out, log_sum_exp, p.options())};
      });
}

TEST_CASE("queries, keys and values may have separate axes for heads and features") {
  attention_problem p{2, 9, 3, 4, true};
  auto qkv = p.qkv.reshape({2, 9, 3, 3, 4});
  auto [out, log_sum_exp] = troupe::attention_forward(qkv, p.options());
  CHECK(same_bits(out, troupe::attention_forward(p.qkv, p.options()).out));
  CHECK(same_bits(
      troupe::attention_backward(p.dout, qkv, out, log_sum_exp, p.options()),
      troupe::attention_backward(p.dout, p.qkv, out, log_sum_exp, p.options()).reshape(qkv.shape())));
}

TEST_CASE("attention heads may have any alignment") {
  for (auto type : floating_types) {
    attention_problem p{1, 70, 2, 8, true, 0, type};
    auto count = p.qkv.num_elements();
    auto moved = tensor::empty({count + 1}, type, p.qkv.device()).rows(1, count).reshape(p.qkv.shape());
    moved.copy_from(p.qkv);
    auto [out, log_sum_exp] = troupe::attention_forward(p.qkv, p.options());
    CHECK(same_bits(out, troupe::attention_forward(moved, p.options()).out));
    CHECK(same_bits(troupe::attention_backward(p.dout, p.qkv, out, log_sum_exp, p.options()),
                    troupe::attention_backward(p.dout, moved, out, log_sum_exp, p.options())));
  }
}

TEST_CASE("attention names the argument, what it expected and what it got", "[host]") {
  attention_problem p{2, 3, 2, 4, true};
  auto [out, log_sum_exp] = troupe::attention_forward(p.qkv, p.options());
  CHECK_THROWS_WITH(troupe::attention_forward({}, {}), ContainsSubstring("[attention] expected qkv of f32"));
  CHECK_THROWS_WITH(troupe::attention_forward(p.qkv, {.num_heads = 0}),
                    ContainsSubstring("num_heads >= 1, got 0"));
  CHECK_THROWS_WITH(troupe::attention_forward(p.qkv, {.num_heads = 2, .scale = -1}),
                    ContainsSubstring("scale >= 0, got -1"));
  CHECK_THROWS_WITH(troupe::attention_forward(p.qkv, {.num_heads = 5}),
                    ContainsSubstring("with H = 5, got f32[2, 3, 24]"));
  CHECK_THROWS_WITH(troupe::attention_forward(p.qkv.reshape({2, 3, 3, 2, 4}), {.num_heads = 4}),
                    ContainsSubstring("with H = 4, got f32[2, 3, 3, 2, 4]"));
  CHECK_THROWS_WITH(troupe::attention_forward(tensor::empty({2, 3, 0}), {}),
                    ContainsSubstring("heads of at least one element"));
  CHECK_THROWS_WITH(troupe::attention_backward(out, p.qkv, p.qkv, log_sum_exp, p.options()),
                    ContainsSubstring("[attention_backward] expected out f32[2, 3, 8], got f32[2, 3, 24]"));
  CHECK_THROWS_WITH(troupe::attention_backward(p.qkv, p.qkv, out, log_sum_exp, p.options()),
                    ContainsSubstring("dout f32[2, 3, 8]"));
  CHECK_THROWS_WITH(troupe::attention_backward(out, p.qkv, out, out, p.options()),
                    ContainsSubstring("log_sum_exp f32[2, 2, 3]"));
}
